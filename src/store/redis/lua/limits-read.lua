-- Usage of a limit scope, without side effects: as the next admission would find it after it has released expired
-- holds.
-- KEYS account holds expiries; ARGV scope
local account, holds, expiries, scope = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local now = clock()
-- The scope of a key itself is '*/<id>'; its requests in flight have a field of their own.
local key_id = string.match(scope, '^%*/(.+)$')
local counter = key_id and 'kc:' .. key_id or 'c:' .. scope
local facts = redis.call('HMGET', account, 'name', 'tb:' .. scope .. ':r', 'tb:' .. scope .. ':t', counter, 'conc',
  'tb:over')
if not facts[1] then return false end
local of_scope, of_account = tonumber(facts[4] or '0'), tonumber(facts[5] or '0')
for _, rid in ipairs(expired_holds(expiries, now)) do
  local record = redis.call('HGET', holds, rid)
  if record then
    of_account = of_account - 1
    local said = cjson.decode(record)
    local is_of_key = key_id == said[5] and string.sub(said[17] or '', 1, 1) == 'c'
    if said[3] == scope or is_of_key then of_scope = of_scope - 1 end
  end
end
return { text(now), facts[2] or '', facts[3] or '', text(of_scope), text(of_account), facts[6] or '' }
