-- Changes an account's status and labels; a closed one changes no more. What is done again counts only above the account's
-- revision, which is the store's time, as in key-change.lua, and has all labels.
-- KEYS account; ARGV revision of a replay or '', status or '', most labels, '1' where labels are said, then of each its name
--      and its value ('': it goes)
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'status', 'labels', 'rev')
if not facts[1] then return 'none' end
if facts[2] == 'closed' then return 'same' end
local revision, replayed = tonumber(facts[4] or '1'), tonumber(ARGV[1])
if replayed and not (replayed > revision) then return 'same' end
local labels, count = {}, 0
if facts[3] and not (replayed and ARGV[4] == '1') then labels = cjson.decode(facts[3]) end
for i = 5, #ARGV, 2 do
  labels[ARGV[i]] = nil
  if ARGV[i + 1] ~= '' then labels[ARGV[i]] = ARGV[i + 1] end
end
for _ in pairs(labels) do count = count + 1 end
if count > tonumber(ARGV[3]) then return 'too_many' end
local status = facts[2] or 'normal'
if ARGV[2] ~= '' then status = ARGV[2] end
redis.call('HSET', account, 'status', status, 'labels', cjson.encode(labels), 'rev',
  text(replayed or math.max(revision + 1, clock())))
return 'changed'
