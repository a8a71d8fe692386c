-- Amounts and other numbers, for every script that calculates with them, whether it writes or only reads (scripts.ts
-- lists them). Amounts arrive as decimal strings. In a script that writes, every check comes before the first write
-- (docs/redis-scripts.md has the rules).

local AMOUNT_MAX = 9000000000000000
-- A double represents every whole number up to here.
local EXACT_MAX = 9007199254740991

-- The number in a canonical amount, or nil. NaN fails the last comparison only in this form.
local function amount(s)
  if type(s) ~= 'string' or #s > 16 or not string.find(s, '^%d+$') then return nil end
  local n = tonumber(s)
  if not (n >= 0 and n <= AMOUNT_MAX) then return nil end
  return n
end

-- A whole number below 2^53 as text. Lua's own conversion turns 1e14 into '1e+14'. '%d' takes a third of the time of
-- '%.0f'. It is exact if a `long` of the server has 64 bits, which the gateway checks (rights.lua).
local function text(n)
  return string.format('%d', n)
end

local function bad(what)
  return redis.error_reply('BADARG ' .. what)
end

-- Ends the script: the stored data was not written by a script. Nothing may have been written before this call.
local function damaged(what)
  error({ err = 'DAMAGED ' .. what })
end

-- A stored whole number below 2^53; 0 if there is none. The remainder of NaN or infinity is not zero.
local function stored_number(s, name)
  if not s then return 0 end
  local n = tonumber(s)
  if not n or n % 1 ~= 0 or n > EXACT_MAX or n < -EXACT_MAX then damaged(name) end
  return n
end

-- Milliseconds since the epoch. TIME is not frozen inside a script, so it is read once.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
