-- Gives a key another value; the present one keeps working until its end. The same value again changes nothing. A
-- replay takes effect only above the last rotation, whatever else was changed: other changes do not affect the values.
-- KEYS account
-- ARGV id, hash of the new value, milliseconds that the old one keeps working or '', in a replay its end and the
-- revision, most values at one time
local account = KEYS[1]
local id, hash = ARGV[1], ARGV[2]
local before = redis.call('HGET', account, 'ki:' .. id)
if not before then return false end
local stored = redis.call('HGET', account, 'k:' .. before)
local key = filled(cjson.decode(stored))
if is_revoked(key) or redis.call('HGET', account, 'k:' .. hash) then return stored end
local rotated, replayed = tonumber(key[11]) or 0, tonumber(ARGV[5])
if replayed and not (replayed > rotated) then return stored end
local now = clock()
local most, working = tonumber(ARGV[6]), 1
local former = {}
for value, ends in string.gmatch(key[10], '(%S+) (%S+)') do
  former[#former + 1] = { value = value, ends = tonumber(ends) }
end
former[#former + 1] = { value = before, ends = tonumber(ARGV[4]) or now + tonumber(ARGV[3]) }
for _, one in ipairs(former) do
  if one.ends > now then working = working + 1 end
end
if working > most then return 'too_many' end
-- Expired values are remembered for a while, so that a program that still uses one gets the right error. Then the first
-- to expire is forgotten.
local forgotten
if #former > most then
  forgotten = 1
  for i = 2, #former - 1 do
    local one, first = former[i], former[forgotten]
    if one.ends < first.ends or (one.ends == first.ends and one.value < first.value) then forgotten = i end
  end
  forgotten = 'k:' .. table.remove(former, forgotten).value
end
local texts = {}
for i, one in ipairs(former) do texts[i] = one.value .. ' ' .. text(one.ends) end
local past = cjson.encode({ id, '', 'revoked', key[4], key[5], '', '', '', text(former[#former].ends) })
key[10], key[11] = table.concat(texts, ' '), text(math.max(rotated + 1, replayed or now))
local changed = cjson.encode(key)
redis.call('HSET', account, 'k:' .. hash, changed, 'ki:' .. id, hash, 'k:' .. before, past)
if forgotten then redis.call('HDEL', account, forgotten) end
return changed
