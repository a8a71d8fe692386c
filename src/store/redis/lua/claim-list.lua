-- The oldest notes with their instants, and the time.
-- KEYS claims; ARGV most
return { text(clock()), redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', ARGV[1]) }
