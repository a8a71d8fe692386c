-- Removes the note of a claim.
-- KEYS claims; ARGV hash, the instant of the note or ''. A note that was renewed since that instant stays.
local claims = KEYS[1]
if ARGV[2] ~= '' and redis.call('ZSCORE', claims, ARGV[1]) ~= ARGV[2] then return 'kept' end
redis.call('ZREM', claims, ARGV[1])
return 'dropped'
