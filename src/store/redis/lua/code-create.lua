-- Makes a code, once per hash. Replies the batch that the code is in, or ''.
-- KEYS code; ARGV id, card, plan, group, lasts ms, starts, quota or '', expires or '', batch or ''
local code = KEYS[1]
local lasts = tonumber(ARGV[5])
if not (lasts > 0 and lasts <= AMOUNT_MAX) then return bad('lasts') end
if ARGV[7] ~= '' and not amount(ARGV[7]) then return bad('quota') end
if ARGV[8] ~= '' and not amount(ARGV[8]) then return bad('expires') end
if redis.call('HGET', code, 'id') then return redis.call('HGET', code, 'batch') or '' end
redis.call('HSET', code, 'id', ARGV[1], 'card', ARGV[2], 'plan', ARGV[3], 'group', ARGV[4], 'lasts', ARGV[5],
  'starts', ARGV[6], 'quota', ARGV[7], 'expires', ARGV[8], 'batch', ARGV[9], 'state', 'unused', 'created', text(clock()))
return ARGV[9]
