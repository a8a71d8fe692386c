-- Which commands this user may not run, without running them. The check needs only the right to run this script.
-- ARGV for each command: the number of its words, then the words
-- Replies what else is wrong with this server, or '', and the indexes, from 1, of the commands that are not allowed.
local wrong, lacking = '', {}
-- A whole number is written with '%d' (common.lua).
if string.format('%d', 9007199254740991) ~= '9007199254740991' then wrong = 'its Lua does not have 64-bit integers' end
local from, place = 1, 0
while ARGV[from] do
  local words = tonumber(ARGV[from])
  place = place + 1
  -- Redis raises an error for a command that was renamed.
  local known, may = pcall(redis.acl_check_cmd, unpack(ARGV, from + 1, from + words))
  if not known or not may then lacking[#lacking + 1] = string.format('%d', place) end
  from = from + words + 1
end
return { wrong, lacking }
