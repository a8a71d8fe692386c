-- Adds a notice. With a mark it is added once: the mark stays with the account, as the records of its cards do, and has the
-- latest that was told (store/notices.ts).
-- KEYS outbox; ARGV kind, ref, a mark's name and which time it is or '' and '', '1' where there must be an account or '', and
--      facts in turn
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
