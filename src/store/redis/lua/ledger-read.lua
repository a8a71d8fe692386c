-- A page of the ledger, the opening line in front where it is among what is asked for. A line that the opening line stands
-- for is not shown beside it, should it still be there.
-- KEYS ledger opening; ARGV the line before the page, lines at most. Replies the opening's fields or false, and entries.
local ledger, opening = KEYS[1], KEYS[2]
local after, count = ARGV[1], tonumber(ARGV[2])
local opened = redis.call('HMGET', opening, 'seq', 'line')
local first = false
if opened[1] and tonumber(opened[1]) > tonumber(after) then
  first, after = opened, opened[1]
  count = count - 1
end
if count < 1 then return { first, {} } end
return { first, redis.call('XRANGE', ledger, '(' .. after .. '-0', '+', 'COUNT', string.format('%d', count)) }
