-- Adds a notice. With a mark it is added once: the mark stays in the account, as the records of its cards do, and has
-- the latest instance that was reported (store/notices.ts).
-- KEYS outbox
-- ARGV kind, ref, a mark's name and instance or '' twice, '1' if there must be an account or '', then the facts, names
-- and values alternating
local fields, facts = {}, {}
if ARGV[5] == '1' and redis.call('HEXISTS', outbox, 'name') == 0 then return 'none' end
if ARGV[3] ~= '' then
  local mark = 'nm:' .. ARGV[1] .. ':' .. ARGV[3]
  local latest = stored_number(redis.call('HGET', outbox, mark), outbox .. ' ' .. mark)
  if latest >= tonumber(ARGV[4]) then return 'known' end
  fields = { mark, ARGV[4] }
end
for i = 6, #ARGV do facts[i - 5] = ARGV[i] end
put_notice(fields, clock(), ARGV[1], ARGV[2], facts)
redis.call('HSET', outbox, unpack(fields))
return 'added'
