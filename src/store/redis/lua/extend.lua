-- Raises a hold to a target, as far as free funds allow. embedded/admit.ts does the same.
-- KEYS account holds expiries
-- ARGV rid, target

local holds, expiries = KEYS[2], KEYS[3]
local rid, target = ARGV[1], amount(ARGV[2])
if not target then return bad('target') end

local function read()
  return unpack(redis.call('HMGET', account, 'todo', 'bal', 'held', 'status'))
end

local now = clock()
local todo, bal, held_before, status = read()
if todo then finish(todo) end
if sweep(account, holds, expiries, now) then todo, bal, held_before, status = read() end
local stored = redis.call('HGET', holds, rid)
if not stored then return { 'gone' } end
local record, held = hold_of(rid, stored)
-- A sweep is limited, so the holds that it left may be expired too.
if not (tonumber(record[2]) > now) then return { 'gone' } end

local entitlement = record[4]
-- An entitlement without quota pays without a hold.
if held >= target or record[7] == '1' then return { 'held', record[1] } end

-- A key or account that may no longer be used keeps what was set aside for the request, and gets no more.
if status and status ~= 'normal' then return { 'held', record[1] } end
local hash = redis.call('HGET', account, 'ki:' .. record[5])
local stored_key = hash and redis.call('HGET', account, 'k:' .. hash)
if stored_key and cjson.decode(stored_key)[3] == 'revoked' then return { 'held', record[1] } end

local free, payer = 0, 'held'
if entitlement == '' then
  held_before = stored_number(held_before, account .. ' held')
  free = stored_number(bal, account .. ' bal') - held_before
else
  payer, held_before = 'eh:' .. entitlement, 0
  local card = read_card(account, entitlement)
  if card and card.quota then free, held_before = card.quota - card.spent - card.held, card.held end
end
local counted, budgets, kit = record[17] or '', nil, nil
if counted ~= '' then
  kit = budget_kit()
  budgets = kit.counted(counted, record[5])
  free = math.min(free, kit.rest(budgets, kit.limits_now(record[5]), 'budgets', 0) or free)
end
local more = math.min(target - held, free)
if not (more > 0) then return { 'held', record[1] } end
record[1] = text(held + more)
local fields = { payer, text(held_before + more) }
if kit then kit.move(fields, budgets, 0, more) end
change(fields, { { 'HSET', holds, rid, cjson.encode(record) } }, {}, {})
return { 'held', record[1] }
