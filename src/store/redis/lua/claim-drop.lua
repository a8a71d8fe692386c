-- Forgets a note.
-- KEYS claims; ARGV hash, the instant of the note or '': a note that was renewed since then stays
local claims = KEYS[1]
if ARGV[2] ~= '' and redis.call('ZSCORE', claims, ARGV[1]) ~= ARGV[2] then return 'kept' end
redis.call('ZREM', claims, ARGV[1])
return 'dropped'
