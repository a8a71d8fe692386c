-- Enters codes in the index, from their ids to their hashes.
-- KEYS code index (hash), ids in order (sorted set), one slot; ARGV id, hash, id, hash, ...
for i = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], '0', ARGV[i])
end
return 'indexed'
