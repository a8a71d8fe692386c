-- Sets the balance below which an account gets a notice; revisions as in account-plan.lua.
-- KEYS account; ARGV nano-dollars or '', revision of a replay or ''
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'nb_rev')
if not facts[1] then return 'none' end
local revision, replayed = tonumber(facts[2] or '0'), tonumber(ARGV[2])
if replayed and not (replayed > revision) then return 'set' end
if ARGV[1] ~= '' and not amount(ARGV[1]) then return bad('below') end
redis.call('HSET', account, 'nb', ARGV[1], 'nb_rev', text(replayed or math.max(revision + 1, clock())))
return 'set'
