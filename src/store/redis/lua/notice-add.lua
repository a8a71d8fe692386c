-- Adds a notice. With a mark it is added once: the mark stays with the account, as the records of its cards do.
-- KEYS outbox; ARGV kind, ref, '1' for a mark or '', '1' where there must be an account or '', and facts in turn
local fields, facts = {}, {}
if ARGV[4] == '1' and redis.call('HEXISTS', outbox, 'name') == 0 then return 'none' end
local mark = 'nm:' .. ARGV[1] .. ':' .. ARGV[2]
if ARGV[3] == '1' then
  if redis.call('HEXISTS', outbox, mark) == 1 then return 'known' end
  fields = { mark, '1' }
end
for i = 5, #ARGV do facts[i - 4] = ARGV[i] end
put_notice(fields, clock(), ARGV[1], ARGV[2], facts)
redis.call('HSET', outbox, unpack(fields))
return 'added'
