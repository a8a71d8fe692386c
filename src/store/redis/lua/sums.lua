-- Sums that may exceed 2^53 and are therefore added as texts.

-- Two numbers below this add up exactly as doubles.
local PLAIN_MAX = 1e15

-- The exact sum of a stored whole number (false if there is none) and another one, both as texts. Ends the script if
-- the first is damaged, or if the sum exceeds 63 bits, which is the most that SQLite, and HINCRBY in scripts of earlier
-- versions, can hold.
local function plus(a, b, name)
  if not a then return b end
  local x, y = tonumber(a) or PLAIN_MAX, tonumber(b)
  if x % 1 == 0 and x < PLAIN_MAX and x > -PLAIN_MAX and y < PLAIN_MAX and y > -PLAIN_MAX then return text(x + y) end
  if a ~= '0' and not (#a <= 20 and string.find(a, '^%-?[1-9]%d*$')) then damaged(name) end
  -- The last nine digits, and the digits before them, both with the number's sign.
  local high, low = 0, 0
  for _, s in ipairs({ a, b }) do
    local sign = 1
    if string.sub(s, 1, 1) == '-' then sign, s = -1, string.sub(s, 2) end
    high = high + sign * (tonumber(string.sub(s, 1, -10)) or 0)
    low = low + sign * tonumber(string.sub(s, -9))
  end
  if low >= 1e9 then high, low = high + 1, low - 1e9 end
  if low <= -1e9 then high, low = high - 1, low + 1e9 end
  -- Both halves get one sign.
  if high > 0 and low < 0 then high, low = high - 1, low + 1e9 end
  if high < 0 and low > 0 then high, low = high + 1, low - 1e9 end
  local digits = text(math.abs(low))
  if high ~= 0 then digits = string.format('%d%09d', math.abs(high), math.abs(low)) end
  if #digits > 19 or (#digits == 19 and digits > '9223372036854775807') then damaged(name) end
  if high < 0 or low < 0 then return '-' .. digits end
  return digits
end
