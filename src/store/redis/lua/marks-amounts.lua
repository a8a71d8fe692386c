-- The settled amounts of requests of one account, if their marks can be trusted by the rules of settle.lua; otherwise
-- ''.
-- KEYS account holds, then the marks, whose names end with their request ids
-- Replies one text, separated by spaces: parsing a reply of 128 elements takes 0.5 us for each.
local account, holds, amounts = KEYS[1], KEYS[2], {}
local todo, seq = unpack(redis.call('HMGET', account, 'todo', 'seq'))
-- The next settlement finishes a change that stopped half-way, so no mark is trusted before that.
local counted = not todo and tonumber(seq or '') or -1

local function amount_of(rid, mark)
  local readable, said = pcall(cjson.decode, mark)
  if not readable or type(said) ~= 'table' then return '' end
  -- The account has counted the first line, which the mark names, and the hold is gone.
  if (tonumber(said[3] or '') or 0) > counted or redis.call('HEXISTS', holds, rid) == 1 then return '' end
  return type(said[1]) == 'string' and string.match(said[1], '^%d+$') or ''
end

-- The name of a mark is the account's key, ':d:' and the request id.
for i = 3, #KEYS do
  local settled = KEYS[i]
  local mark = redis.call('GET', settled)
  amounts[i - 2] = mark and amount_of(string.sub(settled, #account + 4), mark) or ''
end
return table.concat(amounts, ' ')
