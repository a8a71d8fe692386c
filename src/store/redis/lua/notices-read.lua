-- What waits in a queue, oldest first, without side effects.
-- KEYS outbox; ARGV most. Replies the account's name or '', the last position removed, the last assigned, and the
-- notices.
local found = redis.call('HMGET', outbox, 'name', 'nseq', 'ntaken')
local last, taken = stored_number(found[2], outbox .. ' nseq'), stored_number(found[3], outbox .. ' ntaken')
local names = {}
local first = math.max(taken, last - NOTICES_MAX) + 1
for place = first, math.min(last, first + tonumber(ARGV[1]) - 1) do names[#names + 1] = 'n:' .. text(place % NOTICES_MAX) end
local notices = {}
if #names > 0 then
  for _, notice in ipairs(redis.call('HMGET', outbox, unpack(names))) do
    -- An empty text replaces a deleted notice: a list in a reply ends at a nil.
    notices[#notices + 1] = notice or ''
  end
end
return { found[1] or '', text(taken), text(last), notices }
