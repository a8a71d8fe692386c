-- Figures of an account at one instant, only those that are asked for (store/figures.ts), without side effects.
-- KEYS account holds expiries payments ledger opening, then settled marks, then for each day its sums and its counts
-- ARGV number of marks, of days, holds at most ('0': none wanted), then as JSON lists: fields of the account, payments,
-- fields of the sums, fields of the counts
-- Replies time, last line, fields, payments, number of all payments, marks, sums and counts by day, holds, expiries,
-- and the number of holds. If there are more holds than can be read, none are.
local account, holds, expiries, payments, ledger, opening = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local marks, days, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local fields, paid = cjson.decode(ARGV[4]), cjson.decode(ARGV[5])
local summed, counted = cjson.decode(ARGV[6]), cjson.decode(ARGV[7])

-- cjson decodes an empty list as an empty table, and HMGET needs at least one field.
local function values(hash, names)
  if #names == 0 then return {} end
  return redis.call('HMGET', hash, unpack(names))
end

local now = clock()
if redis.call('EXISTS', account) == 0 then return false end
local last = redis.call('XREVRANGE', ledger, '+', '-', 'COUNT', '1')[1]
last = last and string.match(last[1], '^%d+') or redis.call('HGET', opening, 'seq') or '0'

local recorded = {}
for i = 1, marks do
  local settled = KEYS[6 + i]
  recorded[i] = redis.call('GET', settled)
end
local by_day = {}
for i = 1, days do
  local sums, counts = KEYS[6 + marks + 2 * i - 1], KEYS[6 + marks + 2 * i]
  by_day[i] = { values(sums, summed), values(counts, counted) }
end
local held, ends = {}, {}
if most > 0 and redis.call('HLEN', holds) <= most then
  held = redis.call('HGETALL', holds)
  ends = redis.call('ZRANGEBYSCORE', expiries, '-inf', '+inf', 'WITHSCORES', 'LIMIT', '0', ARGV[3])
end
return { text(now), last, values(account, fields), values(payments, paid), text(redis.call('HLEN', payments)), recorded,
  by_day, held, ends, text(redis.call('HLEN', holds)) }
