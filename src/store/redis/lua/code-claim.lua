-- Gives an unused code to an account: Redis runs one script at a time, so one account wins.
-- KEYS code; ARGV tag. Replies '1' when this call claimed it, then the code.
local code = KEYS[1]
local texts = code_texts(code)
if not texts then return false end
if texts[8] ~= 'unused' then return { '0', texts } end
redis.call('HSET', code, 'state', 'claimed', 'tag', ARGV[1], 'claimed', text(clock()))
return { '1', code_texts(code) }
