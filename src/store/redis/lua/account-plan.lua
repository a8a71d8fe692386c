-- Sets an account's plan. A replayed change takes effect only above the account's revision, so that a replay never
-- reverts a later change. A new change takes the store's time as its revision, as in key-change.lua.
-- KEYS account; ARGV plan, revision of a replay or ''
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'plan_rev')
if not facts[1] then return 'none' end
local revision, replayed = tonumber(facts[2] or '1'), tonumber(ARGV[2])
if replayed and not (replayed > revision) then return 'set' end
redis.call('HSET', account, 'plan', ARGV[1], 'plan_rev', text(replayed or math.max(revision + 1, clock())))
return 'set'
