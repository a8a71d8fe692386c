-- Adds or takes funds, once per payment id.
-- KEYS account payments ledger holds expiries
-- ARGV id, amount (signed), absolute amount, kind, debit, credit, note, most in total, '1' for a replay, and notice
-- terms (notices.lua)
local payments, ledger, holds, expiries = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local size = amount(ARGV[3])
if not size then return bad('amount') end
local moved = size
if string.sub(ARGV[2], 1, 1) == '-' then moved = -size end
if ARGV[2] ~= text(moved) then return bad('amount') end

local function read()
  return unpack(redis.call('HMGET', account, 'todo', 'bal', 'held', 'topped', 'seq', 'status'))
end

local now = clock()
local todo, bal, held, topped, seq, status = read()
if not bal then return { 'unknown_account' } end
if todo then
  finish(todo)
  todo, bal, held, topped, seq = read()
end
local paid = redis.call('HGET', payments, ARGV[1])
if paid then
  if paid ~= ARGV[2] then return { 'mismatch' } end
  return { 'duplicate', bal }
end
if status == 'closed' and moved > 0 and ARGV[9] ~= '1' then return { 'closed' } end
local before = stored_number(bal, account .. ' bal')
local after = before + moved
local function is_covered() return after - stored_number(held, account .. ' held') >= 0 end
-- An idle account may have expired holds: they keep no funds from being taken.
while moved < 0 and not is_covered() and sweep(account, holds, expiries, now) do
  todo, bal, held, topped, seq = read()
end
if not (is_covered() and after <= AMOUNT_MAX) then return { 'refused' } end
topped = plus(topped, ARGV[2], account .. ' topped')
local most = ARGV[8]
local is_negative = string.sub(topped, 1, 1) == '-'
if not (is_negative or #topped < #most or (#topped == #most and topped <= most)) then return { 'refused' } end

bal = text(after)
seq = text(stored_number(seq, account .. ' seq') + 1)
local fields = { 'bal', bal, 'topped', topped, 'seq', seq }
note_balance(fields, now, before, after, 'adjustment', ARGV[1])
change(fields, {
  { 'HSET', payments, ARGV[1], ARGV[2] },
  line(ledger, seq, text(now), ARGV[4], ARGV[5], ARGV[6], text(size), bal, ARGV[1], '', '', '', ARGV[7]),
}, {}, {})
return { 'credited', bal, noticed and '1' or '' }
