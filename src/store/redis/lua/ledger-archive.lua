-- Replaces the beginning of a ledger by one opening line. The lines are in the archive already; this only checks that
-- they are the same lines. embedded/archive.ts does the same.
-- KEYS account ledger opening
-- ARGV number of the line before (0 at the beginning), of the last line, balance after it, opening line, least age ms,
-- lines at most
local ledger, opening = KEYS[2], KEYS[3]
local after, through = amount(ARGV[1]), amount(ARGV[2])
if not after or not through then return bad('lines') end
if not (through - after >= 1 and through - after <= tonumber(ARGV[6])) then return bad('lines') end

local now = clock()
local facts = redis.call('HMGET', account, 'bal', 'todo')
if not facts[1] then return 'unknown_account' end
if facts[2] then finish(facts[2]) end
local opened = redis.call('HGET', opening, 'seq') or '0'
if opened == ARGV[2] then return 'duplicate' end
if opened ~= ARGV[1] then return 'moved' end
local first = redis.call('XRANGE', ledger, '(' .. opened .. '-0', '+', 'COUNT', '1')[1]
local last = redis.call('XRANGE', ledger, ARGV[2] .. '-0', ARGV[2] .. '-0')[1]
if not first or not last or first[1] ~= text(after + 1) .. '-0' then return 'moved' end
local fields = {}
for i = 1, #last[2], 2 do fields[last[2][i]] = last[2][i + 1] end
if fields.bal ~= ARGV[3] then return 'moved' end
if not (tonumber(fields.at) <= now - tonumber(ARGV[5])) then return 'too_young' end

change({}, {
  { 'HSET', opening, 'seq', ARGV[2], 'line', ARGV[4] },
  { 'XTRIM', ledger, 'MINID', text(through + 1) .. '-0' },
}, {}, {})
return 'archived'
