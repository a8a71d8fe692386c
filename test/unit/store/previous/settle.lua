#!lua
-- What every writing script starts with. Amounts arrive as decimal strings, change by HINCRBY
-- only, and are compared as numbers below 2^53; all checks come before the first write, and nothing after it can fail.

local AMOUNT_MAX = 9000000000000000

-- The number in a canonical amount, or nil. A NaN fails the last comparison in this form, and only in this form.
local function amount(s)
  if type(s) ~= 'string' or #s > 16 or not string.match(s, '^%d+$') then return nil end
  local n = tonumber(s)
  if not (n >= 0 and n <= AMOUNT_MAX) then return nil end
  return n
end

-- A whole number as text. Lua's own conversion turns 1e14 into '1e+14'.
local function text(n)
  if n == 0 then return '0' end
  return string.format('%.0f', n)
end

-- The negative of a whole number as text; '-0' is an error to HINCRBY.
local function negative(n)
  if n == 0 then return '0' end
  return string.format('%.0f', -n)
end

local function bad(what)
  return redis.error_reply('BADARG ' .. what)
end

-- Milliseconds since the epoch. TIME is not frozen inside a script, so it is read once.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- Appends a line to the ledger. The position in the stream is the line's number.
local function line(account, ledger, at, kind, debit, credit, paid, ref, group, model, key, memo)
  local seq = text(redis.call('HINCRBY', account, 'seq', '1'))
  local bal = redis.call('HGET', account, 'bal')
  redis.call('XADD', ledger, seq .. '-0', 'at', text(at), 'kind', kind, 'debit', debit, 'credit', credit,
    'amount', text(paid), 'bal', bal, 'ref', ref, 'group', group, 'model', model, 'key', key, 'memo', memo)
end

-- Rate buckets: debt in tokens x 60,000, which drains by the per-minute limit each millisecond. The same arithmetic as
-- store/buckets.ts, line by line. A bucket is stored as '<debt>:<at>'.

local UNIT = 60000
local DEBT_MAX = 4000000000000000

local function drain(account, field, limit, now)
  local stored = redis.call('HGET', account, field)
  if not stored then return { debt = 0, at = now } end
  local debt, at = string.match(stored, '^(%d+):(%d+)$')
  debt, at = tonumber(debt), tonumber(at)
  local later = math.max(now, at)
  return { debt = math.max(0, debt - limit * (later - at)), at = later }
end

local function wait_ms(bucket, limit, count, now)
  local over = bucket.debt + math.min(count, limit) * UNIT - limit * UNIT
  if over <= 0 then return 0 end
  return math.ceil(over / limit) + (bucket.at - now)
end

-- Takes (or with a negative count gives back) tokens and stores the bucket.
local function take(account, field, bucket, count)
  bucket.debt = math.min(DEBT_MAX, math.max(0, bucket.debt + count * UNIT))
  redis.call('HSET', account, field, text(bucket.debt) .. ':' .. text(bucket.at))
end

-- Limit, remaining and reset of a bucket as three texts; three empty ones without a limit.
local function bucket_texts(bucket, limit, now)
  if not bucket then return '', '', '' end
  local reset = 0
  if bucket.debt > 0 then reset = math.ceil(bucket.debt / limit) + (bucket.at - now) end
  return text(limit), text(math.max(0, math.floor((limit * UNIT - bucket.debt) / UNIT))), text(reset)
end

-- Holds: a hash of records and a sorted set of expiries. A record is a JSON list of texts (store/hold-record.ts).

local SWEEP_MAX = 16

local function release(account, holds, expiries, rid, record)
  if record[1] ~= '0' then
    local field = 'held'
    if record[4] ~= '' then field = 'eh:' .. record[4] end
    redis.call('HINCRBY', account, field, '-' .. record[1])
  end
  redis.call('HINCRBY', account, 'conc', '-1')
  local scope = 'c:' .. record[3]
  if redis.call('HINCRBY', account, scope, '-1') <= 0 then redis.call('HDEL', account, scope) end
  redis.call('HDEL', holds, rid)
  redis.call('ZREM', expiries, rid)
end

-- Lets expired holds go, earliest first, a bounded number of them.
local function sweep(account, holds, expiries, now)
  local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', text(now), 'LIMIT', '0', text(SWEEP_MAX))
  for _, rid in ipairs(expired) do
    local record = redis.call('HGET', holds, rid)
    if record then
      release(account, holds, expiries, rid, cjson.decode(record))
    else
      redis.call('ZREM', expiries, rid)
    end
  end
end

-- Entitlements: 'e:<id>' what never changes, 'ep:<id>' spent, 'eh:<id>' held, 'es' the ids that may still run.

local function card_of(account, id)
  local fields = redis.call('HMGET', account, 'e:' .. id, 'ep:' .. id, 'eh:' .. id)
  if not fields[1] then return nil end
  local e = cjson.decode(fields[1])
  local card = { id = e[1], plan = e[2], group = e[3], from = tonumber(e[4]), to = tonumber(e[5]), quota = nil,
    spent = tonumber(fields[2] or '0'), held = tonumber(fields[3] or '0') }
  if e[6] ~= '' then card.quota = tonumber(e[6]) end
  return card
end

-- Listed cards, earliest to expire first.
local function listed_cards(account, ids)
  local cards = {}
  if not ids then return cards end
  for _, id in ipairs(cjson.decode(ids)) do
    local card = card_of(account, id)
    if card then cards[#cards + 1] = card end
  end
  table.sort(cards, function(a, b)
    if a.to ~= b.to then return a.to < b.to end
    if a.from ~= b.from then return a.from < b.from end
    return a.id < b.id
  end)
  return cards
end

-- A card as texts: id, plan, group, from, until, quota or '', spent, held.
local function card_texts(card)
  local quota = ''
  if card.quota then quota = text(card.quota) end
  return { card.id, card.plan, card.group, text(card.from), text(card.to), quota, text(card.spent), text(card.held) }
end

-- Idempotency keys: which request took one, and how that ended. A text each, a JSON list of texts: request id,
-- fingerprint, state (running, streamed, finished), when it ends. embedded/idempotency.ts does the same, line by line.

-- What a key says, or nil once it has ended.
local function key_mark(key, now)
  local stored = redis.call('GET', key)
  if not stored then return nil end
  local mark = cjson.decode(stored)
  if not (now < tonumber(mark[4])) then return nil end
  return mark
end

-- Why a request with this fingerprint may not have the key; nil when it may.
local function key_refusal(mark, fingerprint)
  if not mark then return nil end
  if mark[2] ~= fingerprint then return 'idempotency_key' end
  if mark[3] == 'running' then return 'idempotency_in_progress' end
  return 'idempotency_' .. mark[3]
end

-- Redis keeps a key through its last millisecond; a mark ends with that millisecond's beginning.
local function put_mark(key, rid, fingerprint, state, till)
  redis.call('SET', key, cjson.encode({ rid, fingerprint, state, text(till) }), 'PXAT', text(till - 1))
end

-- What a settlement leaves of its request's key: the memory of a charge, or, where nothing was charged, nothing. A key
-- that another request has meanwhile is that one's.
local function end_key(key, rid, fingerprint, state, till, now)
  local mark = key_mark(key, now)
  if mark and mark[1] ~= rid then return end
  if state == 'voided' or not (now < till) then
    redis.call('DEL', key)
  else
    put_mark(key, rid, fingerprint, state, till)
  end
end

-- Posts or voids a hold, once, with its ledger lines. embedded/settle.ts does the same.
-- KEYS account holds expiries settled ledger day, counts of the day, and last the idempotency key's where the request has
-- one
-- ARGV see settleArguments in redis/settle.ts

local account, holds, expiries, settled, ledger, day = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local rid, entitlement, voided = ARGV[1], ARGV[3], ARGV[9] == '1'
local admitted_at, owed, lost = tonumber(ARGV[2]), amount(ARGV[4]), amount(ARGV[5])
local taken, used, tpm = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local ref_group, model, key_id, memo = ARGV[16], ARGV[17], ARGV[18], ARGV[19]
local horizon, mark_ms = tonumber(ARGV[21]), ARGV[22]
-- Fingerprint, state and end of the idempotency key, or nil.
local kept = ARGV[23] ~= '' and cjson.decode(ARGV[23]) or nil
local day_counts, counts, attempts = KEYS[7], cjson.decode(ARGV[24]), tonumber(ARGV[25])

if not owed or not lost then return bad('amount') end
if voided and owed ~= 0 then return bad('voided') end
if not (admitted_at >= 0 and admitted_at <= AMOUNT_MAX) then return bad('admitted') end
if not (taken >= 0 and taken <= AMOUNT_MAX and used >= 0 and used <= AMOUNT_MAX) then return bad('tokens') end
if kept and not amount(kept[3]) then return bad('until') end
for i = 2, #counts, 2 do
  if not amount(counts[i]) then return bad('counts') end
end
for i = 1, attempts do
  if not amount(ARGV[22 + 4 * i]) then return bad('attempt') end
end

local now = clock()
if not redis.call('HGET', account, 'bal') then return { 'unknown_account' } end
local mark = redis.call('GET', settled)
if mark then
  local recorded = cjson.decode(mark)[1]
  if recorded == ARGV[4] then return { 'duplicate' } end
  return { 'mismatch', recorded }
end
if now - admitted_at > horizon then return { 'stale' } end

-- The mark comes first: from here on nothing can fail, and a script that died half-way must not charge again.
local record = redis.call('HGET', holds, rid)
redis.call('SET', settled, cjson.encode({ ARGV[4], record or '' }), 'PX', mark_ms)
sweep(account, holds, expiries, now)
if record then
  record = cjson.decode(record)
  if redis.call('HEXISTS', holds, rid) == 1 then release(account, holds, expiries, rid, record) end
end

if kept then end_key(KEYS[#KEYS], rid, kept[1], kept[2], tonumber(kept[3]), now) end

-- The estimate that admission took becomes what was really used; what was voided gives it back whole.
if tpm then
  local difference = used - taken
  if voided then difference = -taken end
  if difference ~= 0 then
    local scope = ARGV[10]
    if record then scope = record[3] end
    local field = 'tb:' .. scope .. ':t'
    take(account, field, drain(account, field, tpm, now), difference)
  end
end

-- The payer pays up to what is free; the rest is absorbed.
local charged, rest = 0, 0
if not voided then
  local free = 0
  if entitlement == '' then
    local funds = redis.call('HMGET', account, 'bal', 'held')
    free = tonumber(funds[1]) - tonumber(funds[2] or '0')
  else
    local card = card_of(account, entitlement)
    if card and not card.quota then
      owed = 0
    elseif card then
      free = card.quota - card.spent - card.held
    end
  end
  charged = math.min(owed, math.max(0, free))
  rest = owed - charged
  if charged > 0 then
    if entitlement == '' then
      redis.call('HINCRBY', account, 'bal', negative(charged))
      redis.call('HINCRBY', account, 'spent', text(charged))
    else
      redis.call('HINCRBY', account, 'ep:' .. entitlement, text(charged))
    end
  end
  redis.call('HINCRBY', day, ARGV[20], text(charged))
  for i = 1, #counts, 2 do redis.call('HINCRBY', day_counts, counts[i] .. '|' .. ARGV[20], counts[i + 1]) end
  line(account, ledger, now, 'usage', ARGV[11], ARGV[12], charged, rid, ref_group, model, key_id, memo)
  if rest > 0 then
    line(account, ledger, now, 'absorbed', ARGV[13], ARGV[12], rest, rid, ref_group, model, key_id, memo)
  end
end
if lost > 0 then
  line(account, ledger, now, 'absorbed', ARGV[14], ARGV[15], lost, rid, ref_group, model, key_id, memo)
end
for i = 22 + 4, 22 + 4 * attempts, 4 do
  line(account, ledger, now, 'absorbed', ARGV[i + 1], ARGV[i + 2], amount(ARGV[i]), rid, ref_group, model, key_id,
    ARGV[i + 3])
end
return { 'settled', text(charged), text(rest), redis.call('HGET', account, 'bal') }
