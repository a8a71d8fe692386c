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

-- Replaces the beginning of a ledger by one opening line. The lines are in the archive already; this only checks that
-- they are the ones that stand here. embedded/archive.ts does the same.
-- KEYS account ledger opening
-- ARGV number of the line before (0 at the beginning), of the last line, balance after it, opening line, least age ms,
--      lines at most
local account, ledger, opening = KEYS[1], KEYS[2], KEYS[3]
local after, through = amount(ARGV[1]), amount(ARGV[2])
if not after or not through then return bad('lines') end
if not (through - after >= 1 and through - after <= tonumber(ARGV[6])) then return bad('lines') end

local now = clock()
if not redis.call('HGET', account, 'bal') then return 'unknown_account' end
local opened = redis.call('HGET', opening, 'seq') or '0'
if opened == ARGV[2] then return 'duplicate' end
if opened ~= ARGV[1] then return 'moved' end
local first = redis.call('XRANGE', ledger, '-', '+', 'COUNT', '1')[1]
local last = redis.call('XRANGE', ledger, ARGV[2] .. '-0', ARGV[2] .. '-0')[1]
if not first or not last or first[1] ~= text(after + 1) .. '-0' then return 'moved' end
local fields = {}
for i = 1, #last[2], 2 do fields[last[2][i]] = last[2][i + 1] end
if fields.bal ~= ARGV[3] then return 'moved' end
if not (tonumber(fields.at) <= now - tonumber(ARGV[5])) then return 'too_young' end

redis.call('HSET', opening, 'seq', ARGV[2], 'line', ARGV[4])
redis.call('XTRIM', ledger, 'MINID', text(through + 1) .. '-0')
return 'archived'
