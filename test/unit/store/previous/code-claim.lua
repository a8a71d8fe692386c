#!lua
-- Amounts and other numbers, for every script that reckons with them, whether it writes or only reads (scripts.ts names
-- them). Amounts arrive as decimal strings; in a script that writes every check comes before the first write
-- (docs/redis-scripts.md has the rules).

local AMOUNT_MAX = 9000000000000000
-- A double holds every whole number up to here.
local EXACT_MAX = 9007199254740991

-- The number in a canonical amount, or nil. A NaN fails the last comparison in this form, and only in this form.
local function amount(s)
  if type(s) ~= 'string' or #s > 16 or not string.find(s, '^%d+$') then return nil end
  local n = tonumber(s)
  if not (n >= 0 and n <= AMOUNT_MAX) then return nil end
  return n
end

-- A whole number below 2^53 as text. Lua's own conversion turns 1e14 into '1e+14'; '%d' takes a third of the time of '%.0f'
-- and is exact where a `long` of the server has 64 bits, which the gateway makes sure of (rights.lua).
local function text(n)
  return string.format('%d', n)
end

local function bad(what)
  return redis.error_reply('BADARG ' .. what)
end

-- Ends the script: what is stored is not what a script wrote. Nothing may have been written before it.
local function damaged(what)
  error({ err = 'DAMAGED ' .. what })
end

-- A stored whole number below 2^53; 0 where there is none. The remainder of a NaN or an infinity is no zero.
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
-- Codes: a hash each, in a slot of its own. What a code is worth never changes; its state goes unused -> claimed ->
-- redeemed, or unused -> void (docs/failure-model.md invariant 11).

-- A code as texts: id, card, plan, group, lasts, starts, quota or '', state, created, tag or '', claimed at or ''.
local function code_texts(code)
  local texts = redis.call('HMGET', code, 'id', 'card', 'plan', 'group', 'lasts', 'starts', 'quota', 'state', 'created',
    'tag', 'claimed')
  if not texts[1] then return false end
  for i = 1, 11 do texts[i] = texts[i] or '' end
  return texts
end
-- Gives an unused code to an account: Redis runs one script at a time, so one account wins.
-- KEYS code; ARGV tag. Replies '1' when this call claimed it, then the code.
local code = KEYS[1]
local texts = code_texts(code)
if not texts then return false end
if texts[8] ~= 'unused' then return { '0', texts } end
redis.call('HSET', code, 'state', 'claimed', 'tag', ARGV[1], 'claimed', text(clock()))
return { '1', code_texts(code) }
