-- Closes an account permanently: from now on admit.lua refuses its keys and key-create.lua makes none.
-- KEYS account; ARGV revision of a replay or ''
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'status', 'rev')
if not facts[1] then return 'none' end
if facts[2] == 'closed' then return 'same' end
redis.call('HSET', account, 'status', 'closed', 'rev',
  text(math.max(tonumber(facts[3] or '1') + 1, tonumber(ARGV[1]) or clock())))
return 'closed'
