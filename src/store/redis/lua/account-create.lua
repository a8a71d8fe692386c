-- Creates an account. The nonce distinguishes a repeated try of the same call from another call with the same tag.
-- KEYS account; ARGV name, plan, nonce
local account = KEYS[1]
local known = redis.call('HMGET', account, 'name', 'nonce')
if known[1] then
  if known[2] == ARGV[3] then return 'created' end
  -- If the name of the account did not reach the index (a crash between the two writes), it may be entered again.
  if known[1] == ARGV[1] then return 'same' end
  return 'exists'
end
redis.call('HSET', account, 'name', ARGV[1], 'plan', ARGV[2], 'nonce', ARGV[3], 'bal', '0', 'held', '0', 'spent', '0',
  'topped', '0', 'seq', '0', 'conc', '0', 'status', 'normal', 'created', text(clock()))
return 'created'
