-- Sets an account's plan. The plan that it has already changes nothing; a change that is made again counts only above
-- the account's revision, so that a replay never moves it back.
-- KEYS account; ARGV plan, revision of a replay or ''
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'plan', 'plan_rev')
if not facts[1] then return 'none' end
local revision, replayed = tonumber(facts[3] or '1'), tonumber(ARGV[2])
if replayed then
  if not (replayed > revision) then return 'set' end
elseif facts[2] == ARGV[1] then
  return 'set'
end
redis.call('HSET', account, 'plan', ARGV[1], 'plan_rev', text(replayed or revision + 1))
return 'set'
