-- Gives a name to a tag, unless another has it. The second write makes the name visible; the first alone has no effect.
-- KEYS name index (hash), names in order (sorted set), one slot; ARGV name, tag
local names, names_in_order = KEYS[1], KEYS[2]
local owner = redis.call('HGET', names, ARGV[1])
if owner and owner ~= ARGV[2] then return owner end
redis.call('ZADD', names_in_order, '0', ARGV[1])
redis.call('HSET', names, ARGV[1], ARGV[2])
return ARGV[2]
