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

-- Raises a hold to a target, as far as what is free allows. embedded/extend.ts does the same.
-- KEYS account holds expiries
-- ARGV rid, target

local account, holds, expiries = KEYS[1], KEYS[2], KEYS[3]
local rid, target = ARGV[1], amount(ARGV[2])
if not target then return bad('target') end

local now = clock()
sweep(account, holds, expiries, now)
local stored = redis.call('HGET', holds, rid)
if not stored then return { 'gone' } end
local record = cjson.decode(stored)
-- A sweep has a limit: what it left is expired all the same.
if not (tonumber(record[2]) > now) then return { 'gone' } end

local held, entitlement = tonumber(record[1]), record[4]
-- An entitlement without quota pays without a hold.
if held >= target or record[7] == '1' then return { 'held', record[1] } end

local free, field = 0, 'held'
if entitlement == '' then
  local funds = redis.call('HMGET', account, 'bal', 'held')
  free = tonumber(funds[1] or '0') - tonumber(funds[2] or '0')
else
  field = 'eh:' .. entitlement
  local card = card_of(account, entitlement)
  if card and card.quota then free = card.quota - card.spent - card.held end
end
local more = math.min(target - held, free)
if not (more > 0) then return { 'held', record[1] } end
record[1] = text(held + more)
redis.call('HSET', holds, rid, cjson.encode(record))
redis.call('HINCRBY', account, field, text(more))
return { 'held', record[1] }
