-- Adds a key, once per id; a closed account gets none.
-- KEYS account; ARGV id, hash, group, name or '', expiry or ''
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'status')
if not facts[1] then return false end
local hash = redis.call('HGET', account, 'ki:' .. ARGV[1]) or ARGV[2]
local known = redis.call('HGET', account, 'k:' .. hash)
if known then return known end
if facts[2] == 'closed' then return false end
local key = cjson.encode({ ARGV[1], ARGV[3], 'normal', text(clock()), '1', ARGV[4], ARGV[5], '', '', '' })
redis.call('HSET', account, 'k:' .. ARGV[2], key, 'ki:' .. ARGV[1], ARGV[2])
return key
