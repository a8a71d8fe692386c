-- Marks a claimed code as credited to its account.
-- KEYS code; ARGV tag
local texts = code_texts(KEYS[1])
if not texts then return false end
if texts[8] ~= 'claimed' or texts[10] ~= ARGV[1] then return texts end
redis.call('HSET', KEYS[1], 'state', 'redeemed')
return code_texts(KEYS[1])
