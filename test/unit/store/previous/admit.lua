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

-- Decides a request: key, plan, group, funds, limits, hold. embedded/admit.ts decides the same.
-- KEYS account holds expiries settled, and the idempotency key's where the request has one
-- ARGV rid, key hash, plans (JSON), groups (JSON: name kind holdFull holdMin rpm tpm concurrency perKey), input tokens,
--      hold life in ms, '1' when the request bucket was taken from before, most requests in flight per account,
--      fingerprint under the idempotency key or ''

local account, holds, expiries, settled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local rid, input_tokens, ttl = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[6])
local idem, fingerprint = KEYS[5], ARGV[9]

local plans = {}
for _, plan in ipairs(cjson.decode(ARGV[3])) do plans[plan] = true end
local groups = {}
for _, g in ipairs(cjson.decode(ARGV[4])) do
  local full, least = amount(g[3]), amount(g[4])
  if not full or not least or not (least <= full) then return bad('hold') end
  if not tonumber(g[7]) then return bad('concurrency') end
  if not groups[g[1]] then
    groups[g[1]] = { kind = g[2], full = full, least = least, rpm = tonumber(g[5]), tpm = tonumber(g[6]),
      concurrency = tonumber(g[7]), per_key = g[8] == '1' }
  end
end
if not (input_tokens >= 0 and input_tokens <= AMOUNT_MAX) then return bad('tokens') end
if not (ttl > 0 and ttl <= AMOUNT_MAX) then return bad('ttl') end

local function refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
  return { 'refused', cause, group or '', wait or '', r1 or '', r2 or '', r3 or '', t1 or '', t2 or '', t3 or '' }
end

local now = clock()
local facts = redis.call('HMGET', account, 'k:' .. ARGV[2], 'bal', 'plan', 'es')
if not facts[1] then return refused('unknown_key') end
local key = cjson.decode(facts[1])
local key_id, group = key[1], key[2]
if key[3] == 'revoked' then return refused('revoked_key', group) end

local before = redis.call('HGET', holds, rid)
if before then return { 'admitted', before } end
local mark = redis.call('GET', settled)
if mark then
  local record = cjson.decode(mark)[2]
  -- Voided before it was admitted: an ask that arrives after its own withdrawal holds nothing and goes nowhere.
  if record == '' then return refused('concurrency', group) end
  return { 'admitted', record }
end
sweep(account, holds, expiries, now)

if idem then
  local taken = key_mark(idem, now)
  local cause = key_refusal(taken, fingerprint)
  if cause then
    local reply = refused(cause, group)
    reply[11] = taken[1]
    return reply
  end
end

local terms = groups[group]
local running, of_group, planned = {}, 0, plans[facts[3]]
for _, card in ipairs(listed_cards(account, facts[4])) do
  if card.from <= now and now < card.to then
    running[#running + 1] = card
    if card.group == group then of_group = of_group + 1 end
    if plans[card.plan] then planned = true end
  end
end
if terms and terms.kind == 'time_card' and of_group == 0 then return refused('no_entitlement', group) end
if not planned then return refused('not_in_plan', group) end
if not terms then return refused('group_mismatch', group) end

-- Funds.
local hold, entitlement, unmetered = nil, '', '0'
if terms.kind == 'time_card' then
  local cause = 'no_entitlement'
  for _, card in ipairs(running) do
    if not hold and card.group == group and plans[card.plan] then
      cause = 'quota_used'
      if not card.quota then
        hold, entitlement, unmetered = 0, card.id, '1'
      else
        local rest = card.quota - card.spent - card.held
        if rest >= terms.least then hold, entitlement = math.min(rest, terms.full), card.id end
      end
    end
  end
  if not hold then return refused(cause, group) end
else
  local held = tonumber(redis.call('HGET', account, 'held') or '0')
  local free = tonumber(facts[2]) - held
  if not (free >= terms.least) then return refused('insufficient_balance', group) end
  hold = math.min(free, terms.full)
end

-- Limits.
local scope = group
if terms.per_key then scope = group .. '/' .. key_id end
local requests_field, tokens_field = 'tb:' .. scope .. ':r', 'tb:' .. scope .. ':t'
local requests = terms.rpm and drain(account, requests_field, terms.rpm, now)
local tokens = terms.tpm and drain(account, tokens_field, terms.tpm, now)

local function refused_by(cause, wait)
  local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
  local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
  return refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
end

if requests and ARGV[7] ~= '1' then
  local wait = wait_ms(requests, terms.rpm, 1, now)
  if wait > 0 then return refused_by('requests', text(wait)) end
  take(account, requests_field, requests, 1)
end
if tokens then
  local wait = wait_ms(tokens, terms.tpm, input_tokens, now)
  if wait > 0 then return refused_by('tokens', text(wait)) end
end
local in_flight = redis.call('HMGET', account, 'c:' .. scope, 'conc')
if tonumber(in_flight[1] or '0') >= terms.concurrency or tonumber(in_flight[2] or '0') >= tonumber(ARGV[8]) then
  return refused_by('concurrency')
end
if idem then put_mark(idem, rid, fingerprint, 'running', now + ttl) end
if tokens then take(account, tokens_field, tokens, input_tokens) end

-- The hold.
local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
local expires = text(now + ttl)
local record = cjson.encode({ text(hold), expires, scope, entitlement, key_id, group, unmetered, text(now),
  r1, r2, r3, t1, t2, t3 })
redis.call('HSET', holds, rid, record)
redis.call('ZADD', expiries, expires, rid)
if hold > 0 then
  local field = 'held'
  if entitlement ~= '' then field = 'eh:' .. entitlement end
  redis.call('HINCRBY', account, field, text(hold))
end
redis.call('HINCRBY', account, 'conc', '1')
redis.call('HINCRBY', account, 'c:' .. scope, '1')
return { 'admitted', record }
