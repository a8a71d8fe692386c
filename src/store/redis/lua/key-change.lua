-- Changes a key's group, or with an empty group revokes it. What is so already does not change, and a revoked key
-- changes no more, so that a repeated write is harmless.
-- KEYS account; ARGV id, group or ''
local account = KEYS[1]
local hash = redis.call('HGET', account, 'ki:' .. ARGV[1])
if not hash then return false end
local stored = redis.call('HGET', account, 'k:' .. hash)
local key = cjson.decode(stored)
if key[3] == 'revoked' or key[2] == ARGV[2] then return stored end
if ARGV[2] == '' then key[3] = 'revoked' else key[2] = ARGV[2] end
key[5] = text(tonumber(key[5]) + 1)
local changed = cjson.encode(key)
redis.call('HSET', account, 'k:' .. hash, changed)
return changed
