-- Takes the notice of a place, and all before it, out of the queue. Again, it changes nothing.
-- KEYS outbox; ARGV place
local found = redis.call('HMGET', outbox, 'nseq', 'ntaken')
local last, taken = stored_number(found[1], outbox .. ' nseq'), stored_number(found[2], outbox .. ' ntaken')
local place = tonumber(ARGV[1])
-- One that was taken last may still be there, where a script has stopped.
if place < taken or place > last then return 'known' end
redis.call('HSET', outbox, 'ntaken', text(place))
-- What has been written over is another notice by now.
local gone = {}
for one = math.max(math.min(taken + 1, place), last - NOTICES_MAX + 1), place do
  gone[#gone + 1] = 'n:' .. text(one % NOTICES_MAX)
end
if #gone > 0 then redis.call('HDEL', outbox, unpack(gone)) end
return 'taken'
