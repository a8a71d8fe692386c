-- Posts or voids a hold, once, with its ledger lines. embedded/settle.ts does the same.
-- KEYS account holds expiries settled ledger day, counts of the day, and the idempotency key's if the request has one
-- ARGV a JSON list of texts (settleTexts in redis/settle.ts), the memo, and notice terms (notices.lua)

local holds, expiries, settled, ledger = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local day, day_counts, idem = KEYS[6], KEYS[7], KEYS[8]
local args = cjson.decode(ARGV[1])
local rid, entitlement, voided = args[1], args[3], args[9] == '1'
local admitted_at, owed, lost = tonumber(args[2]), amount(args[4]), amount(args[5])
local taken, used, tpm = tonumber(args[6]), tonumber(args[7]), tonumber(args[8])
local ref_group, model, key_id, memo = args[16], args[17], args[18], ARGV[2]
local horizon, mark_ms = tonumber(args[20]), tonumber(args[21])
-- Fingerprint, state and end of the idempotency key, or nil.
local kept = args[22] ~= '' and cjson.decode(args[22]) or nil
-- What the request is counted in besides its group's limits, if no hold says it.
local counted = args[25]
-- Fields of the day's counts, then their increments; then four texts for each failed attempt. If the charge is for what
-- an upstream bills, the last three fields are the charge for that upstream, and what is absorbed by group and by
-- upstream.
local counts, attempts = tonumber(args[23]), tonumber(args[24])
local base, plain, attempts_at = 26, counts, 27 + 2 * counts
if args[26] == '1' then plain = counts - 3 end
-- After all others: '' or, for a client that disconnected before it was given anything, allowance, amount and memo, and
-- what the charge adds to the counts, in the form of 23, 26 and those after 26.
local left = attempts_at + 4 * attempts

if not owed or not lost then return bad('amount') end
if voided and owed ~= 0 then return bad('voided') end
if not (admitted_at >= 0 and admitted_at <= AMOUNT_MAX) then return bad('admitted') end
if not (taken >= 0 and taken <= AMOUNT_MAX and used >= 0 and used <= AMOUNT_MAX) then return bad('tokens') end
if args[left] ~= '' and not (voided and amount(args[left]) and amount(args[left + 1])) then return bad('left') end
if kept and not (idem and amount(kept[3])) then return bad('until') end
for i = attempts_at, attempts_at + 4 * attempts - 1, 4 do
  if not amount(args[i]) then return bad('attempt') end
end

-- Among how many lines a settlement without hold and mark looks for lines of its request.
local LATE_LINES_MAX = '64'

local function read()
  local spending = 'spent'
  if entitlement ~= '' then spending = 'ep:' .. entitlement end
  return unpack(redis.call('HMGET', account, 'todo', 'bal', 'held', 'conc', 'seq', spending))
end

local now = clock()
local todo, bal, held, conc, seq, spent = read()
if not bal then return { 'unknown_account' } end
if todo then
  finish(todo)
  todo, bal, held, conc, seq, spent = read()
end
local mark = redis.call('GET', settled)
local stored = redis.call('HGET', holds, rid)
if mark then
  local said = cjson.decode(mark)
  -- A mark is trusted if the hold is gone and the account has counted the first line, which the mark names. A mark of
  -- an earlier version names none.
  local first = tonumber(said[3] or '') or 0
  if stored or first > stored_number(seq, account .. ' seq') then return { 'half_written', said[1] } end
  if said[1] == args[4] or (args[left] ~= '' and said[1] == args[left + 1]) then return { 'duplicate' } end
  return { 'mismatch', said[1] }
end
-- A held request was not settled before, however long ago the clock says that it was admitted.
if not stored then
  -- It is late, or sent again. Its mark may be gone although its lines are there, because its gateway was down for days,
  -- or because a clock that was ahead for days has made it expire. Lines are written when a request ends, so they come
  -- after its admission, unless the clock has changed between.
  local low, high = 1, stored_number(seq, account .. ' seq')
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('XRANGE', ledger, text(middle) .. '-0', '+', 'COUNT', '1')[1]
    if found and tonumber(found[2][2]) < admitted_at then low = middle + 1 else high = middle end
  end
  local charged, first = 0, ''
  for _, found in ipairs(redis.call('XRANGE', ledger, text(low) .. '-0', '+', 'COUNT', LATE_LINES_MAX)) do
    local members = found[2]
    local kind = members[LINE.kind - LINE_HEAD]
    if members[LINE.ref - LINE_HEAD] == rid and (kind == 'usage' or kind == 'absorbed') then
      if first == '' then first = text(number_of(found[1])) end
      if kind == 'usage' or members[6] == args[13] then charged = charged + amount(members[LINE.amount - LINE_HEAD]) end
    end
  end
  if first ~= '' then
    local sum = text(charged)
    local is_left = args[left] ~= '' and sum == args[left + 1]
    -- A card without a quota pays nothing.
    if not is_left and sum ~= args[4] and not (entitlement ~= '' and charged == 0) then return { 'mismatch', sum } end
    redis.call('SET', settled, cjson.encode({ is_left and sum or args[4], '', first }), 'PXAT', text(now + mark_ms))
    return { 'duplicate' }
  end
  if now - admitted_at > horizon then return { 'stale' } end
end

local record, hold
if stored then record, hold = hold_of(rid, stored) end
if sweep(account, holds, expiries, now) then
  todo, bal, held, conc, seq, spent = read()
  if redis.call('HEXISTS', holds, rid) == 0 then hold = nil end
end

-- The changed fields of the account.
local fields, zeros = {}, {}
local funds, set_aside = stored_number(bal, account .. ' bal'), stored_number(held, account .. ' held')

-- Releases the hold. `own`: the part of the card's held amount that belongs to this request.
local scope, own, key_of_hold = args[10], 0, key_id
if record then scope, key_of_hold, counted = record[3], record[5], record[17] or '' end
local bucket = 'tb:' .. scope .. ':t'
local found = redis.call('HMGET', account, 'c:' .. scope, bucket)
local kit, budgets, limits
if counted ~= '' then
  kit = budget_kit()
  budgets, limits = kit.counted(counted, key_of_hold), kit.limits_now(key_of_hold)
end
if hold then
  local of_scope = stored_number(found[1], account .. ' c:' .. scope) - 1
  if of_scope <= 0 then
    of_scope = 0
    zeros[1] = 'c:' .. scope
  end
  fields = { 'conc', text(stored_number(conc, account .. ' conc') - 1), 'c:' .. scope, text(of_scope) }
  if hold > 0 and record[4] == '' then
    set_aside = set_aside - hold
    fields[5], fields[6] = 'held', text(set_aside)
  elseif hold > 0 then
    local name = 'eh:' .. record[4]
    fields[5] = name
    fields[6] = text(stored_number(redis.call('HGET', account, name), account .. ' ' .. name) - hold)
    if record[4] == entitlement then own = hold end
  end
  if string.sub(counted, 1, 1) == 'c' then
    local name, n = 'kc:' .. key_of_hold, #fields
    local of_key = stored_number(redis.call('HGET', account, name), account .. ' ' .. name) - 1
    if of_key <= 0 then
      of_key = 0
      zeros[#zeros + 1] = name
    end
    fields[n + 1], fields[n + 2] = name, text(of_key)
  end
end

-- The client disconnected before it was given anything: absorbed within the account's allowance, charged beyond it.
local recorded = args[4]
if args[left] ~= '' then
  local allowed = take_allowed(redis.call('HGET', account, 'tb:left'), amount(args[left]), lost, now)
  if allowed then
    fields[#fields + 1] = 'tb:left'
    fields[#fields + 1] = allowed
  else
    recorded, memo = args[left + 1], args[left + 2]
    voided, owed, lost = false, amount(recorded), 0
    base, counts = left + 4, tonumber(args[left + 3])
    plain = counts
    if args[base] == '1' then plain = counts - 3 end
    if kept then kept[2] = kept[4] end
  end
end

-- Replaces admission's estimate by the actual usage: none for a refused or failed request, and for what a client wasted
-- no more than was taken.
local difference = (voided and math.min(used, taken) or used) - taken
if tpm and difference ~= 0 then
  fields[#fields + 1] = bucket
  fields[#fields + 1] = take(drain(found[2], tpm, now), difference)
end
if limits and limits.tpm and difference ~= 0 and string.find(counted, 'k', 1, true) then
  local name = 'tb:*/' .. key_of_hold .. ':t'
  fields[#fields + 1] = name
  fields[#fields + 1] = take(drain(redis.call('HGET', account, name), limits.tpm, now), difference)
end

-- The payer pays up to what is free, within the operator's budgets; the rest is absorbed. What was held belongs to the
-- request, whatever happened to the budgets since. An owner's own budget decides only what may begin, not who pays for
-- usage.
local charged, rest, beyond, paid = 0, 0, 0, '0'
if not voided then
  local free = 0
  if entitlement == '' then
    free = funds - set_aside
  else
    local card = read_card(account, entitlement)
    if card and not card.quota then
      owed = 0
    elseif card then
      free = card.quota - card.spent - (card.held - own)
    end
  end
  local function charged_within(whose)
    local within = kit and kit.rest(budgets, limits, whose, hold or 0)
    local most = within and math.min(free, math.max(within, hold or 0)) or free
    return math.min(owed, math.max(0, most))
  end
  charged = charged_within('operators')
  rest = owed - charged
  beyond = kit and owed - charged_within('budgets') or rest
  if charged > 0 then
    paid = text(charged)
    local n = #fields
    if entitlement == '' then
      bal = text(funds - charged)
      fields[n + 1], fields[n + 2] = 'bal', bal
      fields[n + 3], fields[n + 4] = 'spent', plus(spent, paid, account .. ' spent')
      note_balance(fields, now, funds, funds - charged, 'request', rid)
    else
      fields[n + 1] = 'ep:' .. entitlement
      fields[n + 2] = text(stored_number(spent, account .. ' ep:' .. entitlement) + charged)
    end
  end
end

if kit then kit.move(fields, budgets, charged, -(hold or 0)) end

if hold and not voided and is_overrun(beyond, hold) then
  fields[#fields + 1] = 'tb:over'
  fields[#fields + 1] = add_overrun(redis.call('HGET', account, 'tb:over'), now)
end

-- The mark names the first line, if there is one.
local last, at, first = stored_number(seq, account .. ' seq'), text(now), ''
local writes = not voided or lost > 0 or attempts > 0
if writes then first = text(last + 1) end
local steps, before = {
  { 'SET', settled, cjson.encode({ recorded, stored or '', first }), 'PXAT', text(now + mark_ms) },
}, {}
if kept then steps[2] = end_key(idem, rid, kept[1], kept[2], tonumber(kept[3]), now) end
if hold then
  local n = #steps
  steps[n + 1], steps[n + 2] = { 'HDEL', holds, rid }, { 'ZREM', expiries, rid }
end

local function book(kind, debit, credit, paid, said)
  last = last + 1
  steps[#steps + 1] = line(ledger, text(last), at, kind, debit, credit, paid, bal, rid, ref_group, model, key_id, said)
end

-- What a voided request absorbed is in the sums, too.
if not voided or counts > 0 then
  local field, n = args[19], #steps
  local was = redis.call('HGET', day, field)
  steps[n + 1], before[1] = { 'HSET', day, field, plus(was, paid, day) }, { n + 1, { was } }
  -- The first field always grows, so that it shows whether the step has run (finish).
  local names, grown, m = {}, {}, 0
  for i = 1, counts do
    local more = args[base + counts + i]
    if i == plain + 1 then
      more = paid
    elseif i > plain and rest > 0 then
      more = plus(more, text(rest), day_counts)
    end
    if more ~= '0' then
      m = m + 1
      names[m], grown[m] = args[base + i], more
    end
  end
  if m > 0 then
    local stood = redis.call('HMGET', day_counts, unpack(names))
    local sums = { 'HSET', day_counts }
    for i = 1, m do
      local was, more = stood[i], grown[i]
      local x, y = tonumber(was or '0') or PLAIN_MAX, tonumber(more)
      -- plus(), written out: five calls of it take a twentieth of the time of this script.
      if x % 1 == 0 and x >= 0 and x < PLAIN_MAX and y < PLAIN_MAX then
        sums[2 * i + 1], sums[2 * i + 2] = names[i], string.format('%d', x + y)
      else
        sums[2 * i + 1], sums[2 * i + 2] = names[i], plus(was, more, day_counts)
      end
    end
    steps[n + 2], before[2] = sums, { n + 2, stood }
  end
end
if not voided then
  book('usage', args[11], args[12], paid, memo)
  if rest > 0 then book('absorbed', args[13], args[12], text(rest), memo) end
end
if lost > 0 then book('absorbed', args[14], args[15], args[5], memo) end
for i = attempts_at, attempts_at + 4 * attempts - 1, 4 do
  book('absorbed', args[i + 1], args[i + 2], args[i], args[i + 3])
end
if writes then
  local n = #fields
  fields[n + 1], fields[n + 2] = 'seq', text(last)
end
change(fields, steps, zeros, before)
return 'settled ' .. paid .. ' ' .. text(rest) .. ' ' .. bal .. (noticed and ' 1' or '')
