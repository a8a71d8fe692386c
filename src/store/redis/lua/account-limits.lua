-- Sets the limits of an account; revisions as in account-plan.lua.
-- KEYS account; ARGV limits or '', revision of a replay or ''
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'lim_rev')
if not facts[1] then return 'none' end
local revision, replayed = tonumber(facts[2] or '0'), tonumber(ARGV[2])
if replayed and not (replayed > revision) then return 'set' end
redis.call('HSET', account, 'lim', ARGV[1], 'lim_rev', text(replayed or math.max(revision + 1, clock())))
return 'set'
