-- Marks a claimed code as credited to its account.
-- KEYS code; ARGV tag
local code = KEYS[1]
local texts = code_texts(code)
if not texts then return false end
if texts[8] ~= 'claimed' or texts[10] ~= ARGV[1] then return texts end
redis.call('HSET', code, 'state', 'redeemed')
return code_texts(code)
