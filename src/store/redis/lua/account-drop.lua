-- Removes an account whose name turned out to be taken: only an account made by this very call, and only if it is
-- unused.
-- KEYS account; ARGV nonce
local account = KEYS[1]
local known = redis.call('HMGET', account, 'nonce', 'seq')
if known[1] == ARGV[1] and known[2] == '0' then redis.call('DEL', account) end
return 'dropped'
