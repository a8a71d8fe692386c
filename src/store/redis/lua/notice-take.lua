-- Removes the notice at a queue position, and all before it, from the queue. Repeating it changes nothing.
-- KEYS outbox; ARGV position
local found = redis.call('HMGET', outbox, 'nseq', 'ntaken')
local last, taken = stored_number(found[1], outbox .. ' nseq'), stored_number(found[2], outbox .. ' ntaken')
local place = tonumber(ARGV[1])
-- The notice that was removed last may still be there, if a script stopped.
if place < taken or place > last then return 'known' end
redis.call('HSET', outbox, 'ntaken', text(place))
-- A slot that was overwritten contains another notice by now.
local gone = {}
for one = math.max(math.min(taken + 1, place), last - NOTICES_MAX + 1), place do
  gone[#gone + 1] = 'n:' .. text(one % NOTICES_MAX)
end
if #gone > 0 then redis.call('HDEL', outbox, unpack(gone)) end
return 'taken'
