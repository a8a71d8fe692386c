-- Gives a name to a tag, unless another has it.
-- KEYS name index (hash), names in order (sorted set), one slot; ARGV name, tag
local owner = redis.call('HGET', KEYS[1], ARGV[1])
if owner and owner ~= ARGV[2] then return owner end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], '0', ARGV[1])
return ARGV[2]
