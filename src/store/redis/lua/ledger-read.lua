-- A page of the ledger, the opening line in front where it is among what is asked for.
-- KEYS ledger opening; ARGV the line before the page, lines at most, bytes after which a page ends.
-- Replies the opening's fields or false, entries, and '1' where there may be more.
local after, count, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local CHUNK = 50
local opening = redis.call('HMGET', KEYS[2], 'seq', 'line')
local first = false
if opening[1] and tonumber(opening[1]) > after then
  first = { opening[1], opening[2] }
  count = count - 1
end
local entries, bytes, from = {}, 0, '(' .. ARGV[1] .. '-0'
while #entries < count and bytes < most do
  local size = math.min(CHUNK, count - #entries)
  local some = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', string.format('%d', size))
  for _, entry in ipairs(some) do
    entries[#entries + 1] = entry
    for _, value in ipairs(entry[2]) do bytes = bytes + #value end
  end
  if #some < size then return { first, entries, '0' } end
  from = '(' .. some[#some][1]
end
return { first, entries, '1' }
