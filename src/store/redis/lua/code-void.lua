-- Voids an unclaimed code.
-- KEYS code
local code = KEYS[1]
local texts = code_texts(code)
if not texts then return false end
if texts[8] ~= 'unused' then return texts end
redis.call('HSET', code, 'state', 'void')
return code_texts(code)
