-- KEYS account; ARGV plan
if not redis.call('HGET', KEYS[1], 'name') then return 'none' end
redis.call('HSET', KEYS[1], 'plan', ARGV[1])
return 'set'
