-- Gives an unused code to an account. Redis runs one script at a time, so exactly one account wins.
-- KEYS code; ARGV tag, '1' if the claim is a replay and was in time
-- Replies '1' if this call claimed it, 'expired' if the code has expired, otherwise '0'; then the code.
local code = KEYS[1]
local texts = code_texts(code)
if not texts then return false end
if texts[8] ~= 'unused' then return { '0', texts } end
local now = clock()
if ARGV[2] ~= '1' and texts[12] ~= '' and now >= tonumber(texts[12]) then return { 'expired', texts } end
redis.call('HSET', code, 'state', 'claimed', 'tag', ARGV[1], 'claimed', text(now))
return { '1', code_texts(code) }
