-- Forgets a note.
-- KEYS claims; ARGV hash, the instant of the note or '': a note that was renewed since then stays
if ARGV[2] ~= '' and redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 'kept' end
redis.call('ZREM', KEYS[1], ARGV[1])
return 'dropped'
