-- Changes an account's status and labels; a closed account no longer changes. Status and labels have a revision each,
-- the store's time, as in key-change.lua. A replay takes effect only above the revision of what it sets. It contains
-- all labels.
-- KEYS account
-- ARGV revision of a replay or '', status or '', most labels, '1' if labels are given, then for each its name and its
-- value ('': remove it)
local account = KEYS[1]
local facts = redis.call('HMGET', account, 'name', 'status', 'labels', 'rev', 'labels_rev')
if not facts[1] then return 'none' end
if facts[2] == 'closed' then return 'same' end
local of_status, of_labels, replayed = tonumber(facts[4] or '1'), tonumber(facts[5] or '1'), tonumber(ARGV[1])
local sets_status = ARGV[2] ~= '' and (not replayed or replayed > of_status)
local sets_labels = ARGV[4] == '1' and (not replayed or replayed > of_labels)
local fields, now = {}, clock()
if sets_status then fields = { 'status', ARGV[2], 'rev', text(replayed or math.max(of_status + 1, now)) } end
if sets_labels then
  local labels, count = {}, 0
  if facts[3] and not replayed then labels = cjson.decode(facts[3]) end
  for i = 5, #ARGV, 2 do
    labels[ARGV[i]] = nil
    if ARGV[i + 1] ~= '' then labels[ARGV[i]] = ARGV[i + 1] end
  end
  for _ in pairs(labels) do count = count + 1 end
  if count > tonumber(ARGV[3]) then return 'too_many' end
  local n = #fields
  fields[n + 1], fields[n + 2] = 'labels', cjson.encode(labels)
  fields[n + 3], fields[n + 4] = 'labels_rev', text(replayed or math.max(of_labels + 1, now))
end
if #fields == 0 then return 'same' end
redis.call('HSET', account, unpack(fields))
return 'changed'
