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
