-- Voids a code that nobody has claimed.
-- KEYS code
local texts = code_texts(KEYS[1])
if not texts then return false end
if texts[8] ~= 'unused' then return texts end
redis.call('HSET', KEYS[1], 'state', 'void')
return code_texts(KEYS[1])
