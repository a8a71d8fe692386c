-- Which commands this user may not run, without running them: they take no right but that to run this script.
-- ARGV for each command: how many words, then the words. Replies the places of those that are lacking, from 1, and in front
-- of them what else is wrong with this server, or ''.
local wrong, lacking = '', {}
-- A whole number is written with '%d' (common.lua).
if string.format('%d', 9007199254740991) ~= '9007199254740991' then wrong = 'its Lua has no 64 bits for a whole number' end
local from, place = 1, 0
while ARGV[from] do
  local words = tonumber(ARGV[from])
  place = place + 1
  -- A command that was renamed is an error there.
  local known, may = pcall(redis.acl_check_cmd, unpack(ARGV, from + 1, from + words))
  if not known or not may then lacking[#lacking + 1] = string.format('%d', place) end
  from = from + words + 1
end
return { wrong, lacking }
