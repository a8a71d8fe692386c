-- Adds codes to their batch, and makes the batch if its facts are given.
-- KEYS batches in order (sorted set), batch (hash), its codes in order (sorted set), one slot
-- ARGV batch id, label or '' (no facts), count, card, plan, group, lasts ms, starts, quota or '', expires or '', then
-- ids of codes
local batches, batch, batch_codes = KEYS[1], KEYS[2], KEYS[3]
local scored = {}
for i = 11, #ARGV do
  scored[#scored + 1] = '0'
  scored[#scored + 1] = ARGV[i]
end
if #scored > 0 then redis.call('ZADD', batch_codes, unpack(scored)) end
if ARGV[2] == '' then return 'entered' end
if not redis.call('HGET', batch, 'id') then
  redis.call('HSET', batch, 'id', ARGV[1], 'label', ARGV[2], 'count', ARGV[3], 'card', ARGV[4], 'plan', ARGV[5],
    'group', ARGV[6], 'lasts', ARGV[7], 'starts', ARGV[8], 'quota', ARGV[9], 'expires', ARGV[10], 'created', text(clock()))
end
redis.call('ZADD', batches, '0', ARGV[1])
return 'entered'
