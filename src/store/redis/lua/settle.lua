-- Posts or voids a hold, once, with its ledger lines. embedded/settle.ts does the same.
-- KEYS account holds expiries settled ledger day, counts of the day, and last the idempotency key's where the request has
-- one
-- ARGV see settleArguments in redis/settle.ts

local account, holds, expiries, settled, ledger, day = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local rid, entitlement, voided = ARGV[1], ARGV[3], ARGV[9] == '1'
local admitted_at, owed, lost = tonumber(ARGV[2]), amount(ARGV[4]), amount(ARGV[5])
local taken, used, tpm = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local ref_group, model, key_id, memo = ARGV[16], ARGV[17], ARGV[18], ARGV[19]
local horizon, mark_ms = tonumber(ARGV[21]), ARGV[22]
-- Fingerprint, state and end of the idempotency key, or nil.
local kept = ARGV[23] ~= '' and cjson.decode(ARGV[23]) or nil
local day_counts, counts, attempts = KEYS[7], cjson.decode(ARGV[24]), tonumber(ARGV[25])

if not owed or not lost then return bad('amount') end
if voided and owed ~= 0 then return bad('voided') end
if not (admitted_at >= 0 and admitted_at <= AMOUNT_MAX) then return bad('admitted') end
if not (taken >= 0 and taken <= AMOUNT_MAX and used >= 0 and used <= AMOUNT_MAX) then return bad('tokens') end
if kept and not amount(kept[3]) then return bad('until') end
for i = 2, #counts, 2 do
  if not amount(counts[i]) then return bad('counts') end
end
for i = 1, attempts do
  if not amount(ARGV[22 + 4 * i]) then return bad('attempt') end
end

local now = clock()
if not redis.call('HGET', account, 'bal') then return { 'unknown_account' } end
local mark = redis.call('GET', settled)
if mark then
  local recorded = cjson.decode(mark)[1]
  if recorded == ARGV[4] then return { 'duplicate' } end
  return { 'mismatch', recorded }
end
if now - admitted_at > horizon then return { 'stale' } end

-- The mark comes first: from here on nothing can fail, and a script that died half-way must not charge again.
local record = redis.call('HGET', holds, rid)
redis.call('SET', settled, cjson.encode({ ARGV[4], record or '' }), 'PX', mark_ms)
sweep(account, holds, expiries, now)
if record then
  record = cjson.decode(record)
  if redis.call('HEXISTS', holds, rid) == 1 then release(account, holds, expiries, rid, record) end
end

if kept then end_key(KEYS[#KEYS], rid, kept[1], kept[2], tonumber(kept[3]), now) end

-- The estimate that admission took becomes what was really used; what was voided gives it back whole.
if tpm then
  local difference = used - taken
  if voided then difference = -taken end
  if difference ~= 0 then
    local scope = ARGV[10]
    if record then scope = record[3] end
    local field = 'tb:' .. scope .. ':t'
    take(account, field, drain(account, field, tpm, now), difference)
  end
end

-- The payer pays up to what is free; the rest is absorbed.
local charged, rest = 0, 0
if not voided then
  local free = 0
  if entitlement == '' then
    local funds = redis.call('HMGET', account, 'bal', 'held')
    free = tonumber(funds[1]) - tonumber(funds[2] or '0')
  else
    local card = card_of(account, entitlement)
    if card and not card.quota then
      owed = 0
    elseif card then
      free = card.quota - card.spent - card.held
    end
  end
  charged = math.min(owed, math.max(0, free))
  rest = owed - charged
  if charged > 0 then
    if entitlement == '' then
      redis.call('HINCRBY', account, 'bal', negative(charged))
      redis.call('HINCRBY', account, 'spent', text(charged))
    else
      redis.call('HINCRBY', account, 'ep:' .. entitlement, text(charged))
    end
  end
  redis.call('HINCRBY', day, ARGV[20], text(charged))
  for i = 1, #counts, 2 do redis.call('HINCRBY', day_counts, counts[i] .. '|' .. ARGV[20], counts[i + 1]) end
  line(account, ledger, now, 'usage', ARGV[11], ARGV[12], charged, rid, ref_group, model, key_id, memo)
  if rest > 0 then
    line(account, ledger, now, 'absorbed', ARGV[13], ARGV[12], rest, rid, ref_group, model, key_id, memo)
  end
end
if lost > 0 then
  line(account, ledger, now, 'absorbed', ARGV[14], ARGV[15], lost, rid, ref_group, model, key_id, memo)
end
for i = 22 + 4, 22 + 4 * attempts, 4 do
  line(account, ledger, now, 'absorbed', ARGV[i + 1], ARGV[i + 2], amount(ARGV[i]), rid, ref_group, model, key_id,
    ARGV[i + 3])
end
return { 'settled', text(charged), text(rest), redis.call('HGET', account, 'bal') }
