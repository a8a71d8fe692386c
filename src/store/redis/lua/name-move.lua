-- Ends a rename: lists have the new name, and the old one is free.
-- KEYS name index (hash), names in order (sorted set), one slot; ARGV old name or '', new name or '', tag
local names, names_in_order = KEYS[1], KEYS[2]
local old, new, tag = ARGV[1], ARGV[2], ARGV[3]
if new ~= '' then
  local owner = redis.call('HGET', names, new)
  if owner and owner ~= tag then return 'taken' end
  if not owner then redis.call('HSET', names, new, tag) end
  redis.call('ZADD', names_in_order, '0', new)
end
if old ~= '' and redis.call('HGET', names, old) == tag then
  redis.call('ZREM', names_in_order, old)
  redis.call('HDEL', names, old)
end
return 'moved'
