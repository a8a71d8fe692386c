-- Adds a key, once per id. A key is a JSON list of texts: id, group, status, created, revision.
-- KEYS account; ARGV id, hash, group
local account = KEYS[1]
if not redis.call('HGET', account, 'name') then return false end
local hash = redis.call('HGET', account, 'ki:' .. ARGV[1]) or ARGV[2]
local known = redis.call('HGET', account, 'k:' .. hash)
if known then return known end
local key = cjson.encode({ ARGV[1], ARGV[3], 'normal', text(clock()), '1' })
redis.call('HSET', account, 'k:' .. ARGV[2], key, 'ki:' .. ARGV[1], ARGV[2])
return key
