-- The account's part of a rename (names.ts). While a rename is under way, field 'rename' is a JSON list: from, to. The
-- account's own name shows whether the rename has taken effect: it is the old name until the step 'end', and the new
-- one afterwards.
-- KEYS account
-- ARGV 'begin', to, revision of a replay or ''
--    | 'end', from, to, revision of a replay or ''
--    | 'done', from, to: nothing is left to do
--    | 'yield', name: another account wants the name
-- Replies 'behind' when a rename has taken effect and is not finished.
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'status', 'rename', 'name_rev')
local name, stored = facts[1], facts[3]
if not name then return { 'none' } end
local pending = stored and cjson.decode(stored) or {}
local is_behind = pending[2] == name
local revision = tonumber(facts[4] or '1')

if ARGV[1] == 'begin' then
  local to, replayed = ARGV[2], tonumber(ARGV[3])
  if is_behind then return { 'behind', pending[1], pending[2] } end
  if facts[2] == 'closed' and not replayed then return { 'same' } end
  if replayed and not (replayed > revision) then return { 'same' } end
  if name == to and not stored then
    redis.call('HSET', account, 'name_rev', text(replayed or math.max(revision + 1, clock())))
    return { 'same' }
  end
  redis.call('HSET', account, 'rename', cjson.encode({ name, to }))
  return { 'begun', name, pending[2] or '' }
end

local is_this = pending[1] == ARGV[2] and pending[2] == ARGV[3]
if ARGV[1] == 'end' then
  local to, replayed = ARGV[3], tonumber(ARGV[4])
  if not is_this or name ~= ARGV[2] then return { name == to and 'renamed' or 'lost' } end
  redis.call('HSET', account, 'name', to, 'name_rev', text(math.max(revision + 1, replayed or clock())))
  return { 'renamed' }
end

if ARGV[1] == 'done' then
  if is_this then redis.call('HDEL', account, 'rename') end
  return { 'done' }
end

if name == ARGV[2] then return { 'kept' } end
if is_behind and pending[1] == ARGV[2] then return { 'behind', pending[1], pending[2] } end
if pending[2] ~= ARGV[2] then return { 'kept' } end
redis.call('HDEL', account, 'rename')
return { 'free' }
