-- A page of the ledger, the opening line in front where it is among what is asked for.
-- KEYS ledger opening; ARGV the line before the page, lines at most. Replies the opening's fields or false, and entries.
local after, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local opening = redis.call('HMGET', KEYS[2], 'seq', 'line')
local first = false
if opening[1] and tonumber(opening[1]) > after then
  first = { opening[1], opening[2] }
  count = count - 1
end
if count < 1 then return { first, {} } end
return { first, redis.call('XRANGE', KEYS[1], '(' .. ARGV[1] .. '-0', '+', 'COUNT', string.format('%d', count)) }
