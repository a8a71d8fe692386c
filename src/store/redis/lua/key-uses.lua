-- Records the last use of keys, each a JSON list of texts: instant, address, program.
-- KEYS account; ARGV for each its key id, instant, address, program
local account = KEYS[1]
local fields = {}
for i = 1, #ARGV, 4 do
  local id, at = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', account, 'ki:' .. id) then
    local known = redis.call('HGET', account, 'ku:' .. id)
    if not known or tonumber(cjson.decode(known)[1]) < tonumber(at) then
      fields[#fields + 1] = 'ku:' .. id
      fields[#fields + 1] = cjson.encode({ at, ARGV[i + 2], ARGV[i + 3] })
    end
  end
end
if #fields > 0 then redis.call('HSET', account, unpack(fields)) end
return 'noted'
