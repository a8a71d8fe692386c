-- Where a limit scope stands, without side effects: as the next admission would find it, once it has let expired holds go.
-- KEYS account holds expiries; ARGV scope
local account, holds, expiries, scope = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local now = clock()
local facts = redis.call('HMGET', account, 'name', 'tb:' .. scope .. ':r', 'tb:' .. scope .. ':t', 'c:' .. scope, 'conc',
  'tb:over')
if not facts[1] then return false end
local of_scope, of_account = tonumber(facts[4] or '0'), tonumber(facts[5] or '0')
for _, rid in ipairs(expired_holds(expiries, now)) do
  local record = redis.call('HGET', holds, rid)
  if record then
    of_account = of_account - 1
    if cjson.decode(record)[3] == scope then of_scope = of_scope - 1 end
  end
end
return { text(now), facts[2] or '', facts[3] or '', text(of_scope), text(of_account), facts[6] or '' }
