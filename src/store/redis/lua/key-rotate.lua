-- Gives a key another value; the one that it has works on until its end. The same value again changes nothing. What is done
-- again counts only above the last rotation, whatever else became of the key since: a change says nothing of its values.
-- KEYS account; ARGV id, hash of the new value, milliseconds from now on or '', and where it is done again the end and the
--      revision, values at one time
local account = KEYS[1]
local id, hash = ARGV[1], ARGV[2]
local before = redis.call('HGET', account, 'ki:' .. id)
if not before then return false end
local stored = redis.call('HGET', account, 'k:' .. before)
local key = filled(cjson.decode(stored))
if is_revoked(key) or redis.call('HEXISTS', account, 'k:' .. hash) == 1 then return stored end
local rotated, replayed = tonumber(key[11]) or 0, tonumber(ARGV[5])
if replayed and not (replayed > rotated) then return stored end
local now = clock()
local former, over, working = {}, {}, 1
for value, ends in string.gmatch(key[10], '(%S+) (%S+)') do
  if tonumber(ends) > now then
    former[#former + 1] = value .. ' ' .. ends
    working = working + 1
  else
    over[#over + 1] = 'k:' .. value
  end
end
local ends = tonumber(ARGV[4]) or now + tonumber(ARGV[3])
if ends > now then working = working + 1 end
if working > tonumber(ARGV[6]) then return 'too_many' end
former[#former + 1] = before .. ' ' .. text(ends)
key[10], key[11] = table.concat(former, ' '), text(math.max(rotated + 1, replayed or now))
local changed = cjson.encode(key)
local past = cjson.encode({ id, '', 'revoked', key[4], key[5], '', '', '', text(ends) })
redis.call('HSET', account, 'k:' .. hash, changed, 'ki:' .. id, hash, 'k:' .. before, past)
if #over > 0 then redis.call('HDEL', account, unpack(over)) end
return changed
