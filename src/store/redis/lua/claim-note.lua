-- Notes that a code is about to be claimed, so that a claim whose process dies is found and finished.
-- KEYS claims (sorted set by instant); ARGV hash
local claims = KEYS[1]
redis.call('ZADD', claims, text(clock()), ARGV[1])
return 'noted'
