#!lua
-- What every writing script starts with. Amounts arrive as decimal strings, change by HINCRBY
-- only, and are compared as numbers below 2^53; all checks come before the first write, and nothing after it can fail.

local AMOUNT_MAX = 9000000000000000

-- The number in a canonical amount, or nil. A NaN fails the last comparison in this form, and only in this form.
local function amount(s)
  if type(s) ~= 'string' or #s > 16 or not string.match(s, '^%d+$') then return nil end
  local n = tonumber(s)
  if not (n >= 0 and n <= AMOUNT_MAX) then return nil end
  return n
end

-- A whole number as text. Lua's own conversion turns 1e14 into '1e+14'.
local function text(n)
  if n == 0 then return '0' end
  return string.format('%.0f', n)
end

-- The negative of a whole number as text; '-0' is an error to HINCRBY.
local function negative(n)
  if n == 0 then return '0' end
  return string.format('%.0f', -n)
end

local function bad(what)
  return redis.error_reply('BADARG ' .. what)
end

-- Milliseconds since the epoch. TIME is not frozen inside a script, so it is read once.
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- Appends a line to the ledger. The position in the stream is the line's number.
local function line(account, ledger, at, kind, debit, credit, paid, ref, group, model, key, memo)
  local seq = text(redis.call('HINCRBY', account, 'seq', '1'))
  local bal = redis.call('HGET', account, 'bal')
  redis.call('XADD', ledger, seq .. '-0', 'at', text(at), 'kind', kind, 'debit', debit, 'credit', credit,
    'amount', text(paid), 'bal', bal, 'ref', ref, 'group', group, 'model', model, 'key', key, 'memo', memo)
end

-- Adds or takes funds, once per payment id.
-- KEYS account payments ledger; ARGV id, amount (signed), size of the amount, kind, debit, credit, note, most in total
local account, payments, ledger = KEYS[1], KEYS[2], KEYS[3]
local size = amount(ARGV[3])
if not size then return bad('amount') end
local moved = size
if string.sub(ARGV[2], 1, 1) == '-' then moved = -size end
if ARGV[2] ~= '0' and ARGV[2] ~= text(moved) then return bad('amount') end

local now = clock()
local facts = redis.call('HMGET', account, 'bal', 'held', 'topped')
if not facts[1] then return { 'unknown_account' } end
local paid = redis.call('HGET', payments, ARGV[1])
if paid then
  if paid ~= ARGV[2] then return { 'mismatch' } end
  return { 'duplicate', facts[1] }
end
local after = tonumber(facts[1]) + moved
if not (after - tonumber(facts[2]) >= 0 and after <= AMOUNT_MAX) then return { 'refused' } end
if not (tonumber(facts[3]) + moved <= tonumber(ARGV[8])) then return { 'refused' } end

redis.call('HSET', payments, ARGV[1], ARGV[2])
redis.call('HINCRBY', account, 'bal', ARGV[2])
redis.call('HINCRBY', account, 'topped', ARGV[2])
line(account, ledger, now, ARGV[4], ARGV[5], ARGV[6], size, ARGV[1], '', '', '', ARGV[7])
return { 'credited', redis.call('HGET', account, 'bal') }
