-- The mark that reveals a loss of data: the history's id, and for how many seconds a gateway has been counting on it.
-- embedded/epoch.ts does the same.
-- KEYS mark
-- ARGV 'count', known id or '', least count, id for a new mark or ''
--    | 'stop', id
--    | 'renew', present id or '', new id, past ids
-- Replies { id, count, past, stopped }, or nil: there is no mark, or not the one that was named.

local history = KEYS[1]
local found = redis.call('HMGET', history, 'id', 'n', 'at', 'past', 'stopped')
local id, n, past, stopped = found[1], tonumber(found[2] or '0'), found[4] or '', found[5] or ''

if ARGV[1] == 'renew' then
  if (id or '') ~= ARGV[2] then return nil end
  redis.call('HSET', history, 'id', ARGV[3], 'n', text(n), 'at', text(clock()), 'past', ARGV[4], 'stopped', '')
  return { ARGV[3], text(n), ARGV[4], '' }
end

if ARGV[1] == 'stop' then
  if id ~= ARGV[2] then return nil end
  redis.call('HSET', history, 'stopped', '1')
  return { id, text(n), past, '1' }
end

local now = clock()
if not id then
  if ARGV[4] == '' then return nil end
  redis.call('HSET', history, 'id', ARGV[4], 'n', '1', 'at', text(now), 'past', '', 'stopped', '')
  return { ARGV[4], '1', '', '' }
end
-- A mark that may belong to another store, or is too old, is left as it is.
if (ARGV[2] == '' or ARGV[2] == id) and n >= tonumber(ARGV[3]) and stopped == '' then
  local at = tonumber(found[3])
  if now - at >= 1000 or now < at then
    n = n + 1
    redis.call('HSET', history, 'n', text(n), 'at', text(now))
  end
end
return { id, text(n), past, stopped }
