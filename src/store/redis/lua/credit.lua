-- Adds or takes funds, once per payment id.
-- KEYS account payments ledger; ARGV id, amount (signed), size of the amount, kind, debit, credit, note, most in total
local account, payments, ledger = KEYS[1], KEYS[2], KEYS[3]
local size = amount(ARGV[3])
if not size then return bad('amount') end
local moved = size
if string.sub(ARGV[2], 1, 1) == '-' then moved = -size end
if ARGV[2] ~= '0' and ARGV[2] ~= text(moved) then return bad('amount') end

local now = clock()
local facts = redis.call('HMGET', account, 'bal', 'held', 'topped')
if not facts[1] then return { 'unknown_account' } end
local paid = redis.call('HGET', payments, ARGV[1])
if paid then
  if paid ~= ARGV[2] then return { 'mismatch' } end
  return { 'duplicate', facts[1] }
end
local after = tonumber(facts[1]) + moved
if not (after - tonumber(facts[2]) >= 0 and after <= AMOUNT_MAX) then return { 'refused' } end
if not (tonumber(facts[3]) + moved <= tonumber(ARGV[8])) then return { 'refused' } end

redis.call('HSET', payments, ARGV[1], ARGV[2])
redis.call('HINCRBY', account, 'bal', ARGV[2])
redis.call('HINCRBY', account, 'topped', ARGV[2])
line(account, ledger, now, ARGV[4], ARGV[5], ARGV[6], size, ARGV[1], '', '', '', ARGV[7])
return { 'credited', redis.call('HGET', account, 'bal') }
