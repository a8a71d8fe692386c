-- Gives one gateway the delivery of notices for a while, on this server's clock.
-- KEYS lease; ARGV holder, ms, '1' to take it from any other holder, or ''
local lease = KEYS[1]
local has = redis.call('GET', lease)
if has and has ~= ARGV[1] and ARGV[3] ~= '1' then return 'taken' end
redis.call('SET', lease, ARGV[1], 'PX', ARGV[2])
return 'yours'
