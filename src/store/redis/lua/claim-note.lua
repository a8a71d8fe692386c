-- Notes that a code is about to be claimed, so that the claim is found and finished should its maker die.
-- KEYS claims (sorted set by instant); ARGV hash
local claims = KEYS[1]
redis.call('ZADD', claims, text(clock()), ARGV[1])
return 'noted'
