-- Adds codes to the index, from their ids to their hashes. The second write makes them visible; the first alone has no
-- effect. If the id of the first code belongs to another code, none is added.
-- KEYS code index (hash), ids in order (sorted set), one slot; ARGV id, hash, id, hash, ...
local codes, codes_in_order = KEYS[1], KEYS[2]
local stands = redis.call('HGET', codes, ARGV[1])
if stands and stands ~= ARGV[2] then return 'taken' end
local scored = {}
for i = 1, #ARGV, 2 do
  scored[#scored + 1] = '0'
  scored[#scored + 1] = ARGV[i]
end
redis.call('ZADD', codes_in_order, unpack(scored))
redis.call('HSET', codes, unpack(ARGV))
return 'indexed'
