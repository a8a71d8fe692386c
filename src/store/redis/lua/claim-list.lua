-- The oldest notes with their instants, and the time.
-- KEYS claims; ARGV most
local claims = KEYS[1]
return { text(clock()), redis.call('ZRANGEBYSCORE', claims, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', ARGV[1]) }
