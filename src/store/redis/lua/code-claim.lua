-- Gives an unused code to an account: Redis runs one script at a time, so one account wins.
-- KEYS code; ARGV tag. Replies '1' when this call claimed it, then the code.
local texts = code_texts(KEYS[1])
if not texts then return false end
if texts[8] ~= 'unused' then return { '0', texts } end
redis.call('HSET', KEYS[1], 'state', 'claimed', 'tag', ARGV[1], 'claimed', text(clock()))
return { '1', code_texts(KEYS[1]) }
