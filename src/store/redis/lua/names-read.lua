-- Finds tags to which their names do not lead, or whose names are missing in the sorted set, without side effects.
-- KEYS name index (hash), names in order (sorted set), one slot; ARGV names and tags alternating. Replies the tags.
local names, names_in_order, unlisted = KEYS[1], KEYS[2], {}
for i = 1, #ARGV, 2 do
  local is_listed = redis.call('HGET', names, ARGV[i]) == ARGV[i + 1] and redis.call('ZSCORE', names_in_order, ARGV[i])
  if not is_listed then unlisted[#unlisted + 1] = ARGV[i + 1] end
end
return unlisted
