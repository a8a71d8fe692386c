-- Changes a key's group, or with an empty group revokes it. A revoked key changes no more, so that a repeated write is
-- harmless. A revision is the store's time: what is said to a store that forgot earlier changes stands above these when
-- they are done again, also when it changes nothing. A group that is set again counts only above the key's revision; a
-- revocation counts whatever came in between.
-- KEYS account; ARGV id, group or '', revision of a replay or ''
local account = KEYS[1]
local hash = redis.call('HGET', account, 'ki:' .. ARGV[1])
if not hash then return false end
local stored = redis.call('HGET', account, 'k:' .. hash)
local key = cjson.decode(stored)
if key[3] == 'revoked' then return stored end
local revision, replayed = tonumber(key[5]), tonumber(ARGV[3])
if ARGV[2] == '' then
  key[3] = 'revoked'
else
  if replayed and not (replayed > revision) then return stored end
  key[2] = ARGV[2]
end
key[5] = text(math.max(revision + 1, replayed or clock()))
local changed = cjson.encode(key)
redis.call('HSET', account, 'k:' .. hash, changed)
return changed
