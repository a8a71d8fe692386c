-- Makes a name lead to a tag, unless it leads to another. Lists of accounts keep the former name.
-- KEYS name index (hash); ARGV name, tag
local names = KEYS[1]
local owner = redis.call('HGET', names, ARGV[1])
if owner then return owner end
redis.call('HSET', names, ARGV[1], ARGV[2])
return ARGV[2]
