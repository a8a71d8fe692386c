-- The sums of several days in one step, so that a long span weighs no more than a request does.
-- KEYS hashes of days. Replies one flat list of fields and figures for each.
local sums = {}
for i, day in ipairs(KEYS) do sums[i] = redis.call('HGETALL', day) end
return sums
