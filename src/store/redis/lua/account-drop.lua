-- Takes back an account whose name turned out to be taken: only the one this very call made, and only while untouched.
-- KEYS account; ARGV nonce
local account = KEYS[1]
local known = redis.call('HMGET', account, 'nonce', 'seq')
if known[1] == ARGV[1] and known[2] == '0' then redis.call('DEL', account) end
return 'dropped'
