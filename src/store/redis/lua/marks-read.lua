-- Finds the settled marks of one account that the line that they name does not confirm, without side effects.
-- KEYS ledger, then the marks; ARGV their request ids
-- Replies the request ids for which the ledger has to be searched.
local ledger, doubtful = KEYS[1], {}

local function is_line_of(rid, seq)
  if not string.match(seq, '^%d+$') then return false end
  local found = redis.call('XRANGE', ledger, seq .. '-0', seq .. '-0')[1]
  if not found then return false end
  for i = 1, #found[2], 2 do
    if found[2][i] == 'ref' then return found[2][i + 1] == rid end
  end
  return false
end

-- A mark has the amount, the hold's record, and the number of the first line, or '' if there was to be no line. A mark
-- of an earlier version names no line; if its amount is not 0, it has a line.
local function is_borne_out(rid, mark)
  local readable, said = pcall(cjson.decode, mark)
  if not readable or type(said) ~= 'table' then return false end
  local first = said[3] or ''
  if first == '' then return said[1] == '0' end
  return type(first) == 'string' and is_line_of(rid, first)
end

for i, rid in ipairs(ARGV) do
  local settled = KEYS[1 + i]
  local mark = redis.call('GET', settled)
  if mark and not is_borne_out(rid, mark) then doubtful[#doubtful + 1] = rid end
end
return doubtful
