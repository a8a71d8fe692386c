-- The sums of several days in one step, so that a long span weighs no more than a request does.
-- KEYS hashes of days. Replies one flat list of fields and figures for each.
local found = {}
for i, sums in ipairs(KEYS) do found[i] = redis.call('HGETALL', sums) end
return found
