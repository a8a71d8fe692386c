-- Decides a request: key, plan, group, funds, limits, hold. embedded/admit.ts decides the same.
-- KEYS account holds expiries settled, and the idempotency key's where the request has one
-- ARGV rid, key hash, plans (JSON), groups (JSON: name kind holdFull holdMin rpm tpm concurrency perKey, and where there are
--      such the holdFull and holdMin of an account that is held at the dearest), input tokens,
--      hold life in ms, '1' when the request bucket was taken from before, most requests in flight per account,
--      fingerprint under the idempotency key or ''

local holds, expiries, settled, idem = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local rid, input_tokens, ttl = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[6])
local fingerprint = ARGV[9]

local plans = {}
for _, plan in ipairs(cjson.decode(ARGV[3])) do plans[plan] = true end
if not (input_tokens >= 0 and input_tokens <= AMOUNT_MAX) then return bad('tokens') end
if not (ttl > 0 and ttl <= AMOUNT_MAX) then return bad('ttl') end

local function refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
  return { 'refused', cause, group or '', wait or '', r1 or '', r2 or '', r3 or '', t1 or '', t2 or '', t3 or '' }
end

local function read()
  return unpack(redis.call('HMGET', account, 'todo', 'k:' .. ARGV[2], 'plan', 'es', 'bal', 'held', 'conc', 'tb:over',
    'status'))
end

local now = clock()
local todo, stored_key, plan, listed, bal, held, conc, over, status = read()
if not stored_key then return refused('unknown_key') end
local key = key_of(account, stored_key)
local key_id, group = key[1], key[2]
local barred = key_barred(key, now, status)
if barred then return refused(barred, group) end
if todo then finish(todo) end

local before = redis.call('HGET', holds, rid)
if before then return { 'admitted', before } end
local mark = redis.call('GET', settled)
if mark then
  local record = cjson.decode(mark)[2]
  -- Voided before it was admitted: an ask that arrives after its own withdrawal holds nothing and goes nowhere.
  if record == '' then return refused('concurrency', group) end
  return { 'admitted', record }
end
if sweep(account, holds, expiries, now) then todo, stored_key, plan, listed, bal, held, conc, over = read() end

if idem then
  local taken = key_mark(idem, now)
  local cause = key_refusal(taken, fingerprint)
  if cause then
    local reply = refused(cause, group)
    reply[11] = taken[1]
    return reply
  end
end

-- What the group of the key asks of this request.
local terms
local dear = over and is_held_dear(over, now)
for _, g in ipairs(cjson.decode(ARGV[4])) do
  if g[1] == group and not terms then
    terms = { kind = g[2], full = amount(g[3]), least = amount(g[4]), rpm = tonumber(g[5]), tpm = tonumber(g[6]),
      concurrency = tonumber(g[7]), per_key = g[8] == '1' }
    dear = dear and g[9]
    if dear then terms.full, terms.least = amount(g[9]), amount(g[10]) end
    if not terms.full or not terms.least or not (terms.least <= terms.full) then return bad('hold') end
    if not terms.concurrency then return bad('concurrency') end
  end
end
local running, of_group, planned = {}, 0, plans[plan]
for _, card in ipairs(listed_cards(account, listed)) do
  if card.from <= now and now < card.to then
    running[#running + 1] = card
    if card.group == group then of_group = of_group + 1 end
    if plans[card.plan] then planned = true end
  end
end
if terms and terms.kind == 'time_card' and of_group == 0 then return refused('no_entitlement', group) end
if not planned then return refused('not_in_plan', group) end
if not terms then return refused('group_mismatch', group) end

-- Funds: who pays, what of it is held already, and what the request holds.
local payer, entitlement, unmetered, free = 'held', '', '0', nil
local held_before, hold = stored_number(held, account .. ' held'), nil
if terms.kind == 'time_card' then
  local cause = 'no_entitlement'
  for _, card in ipairs(running) do
    if not hold and card.group == group and plans[card.plan] then
      cause = 'quota_used'
      if not card.quota then
        hold, entitlement, unmetered = 0, card.id, '1'
      else
        local rest = card.quota - card.spent - card.held
        if rest >= terms.least then
          hold, entitlement, payer, held_before = math.min(rest, terms.full), card.id, 'eh:' .. card.id, card.held
          free = rest - hold
        end
      end
    end
  end
  if not hold then return refused(cause, group) end
else
  local available = stored_number(bal, account .. ' bal') - held_before
  if not (available >= terms.least) then return refused('insufficient_balance', group) end
  hold = math.min(available, terms.full)
  free = available - hold
end

-- Limits. What the request bucket has counted stays although the request is refused.
local scope = group
if terms.per_key then scope = group .. '/' .. key_id end
local requests_field, tokens_field, scope_field = 'tb:' .. scope .. ':r', 'tb:' .. scope .. ':t', 'c:' .. scope
local found = redis.call('HMGET', account, scope_field, requests_field, tokens_field)
local requests = terms.rpm and drain(found[2], terms.rpm, now)
local tokens = terms.tpm and drain(found[3], terms.tpm, now)
local fields = {}

local function refused_by(cause, wait)
  if #fields > 0 then redis.call('HSET', account, unpack(fields)) end
  local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
  local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
  return refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
end

if requests and ARGV[7] ~= '1' then
  local wait = wait_ms(requests, terms.rpm, 1, now)
  if wait > 0 then return refused_by('requests', text(wait)) end
  fields = { requests_field, take(requests, 1) }
end
if tokens then
  local wait = wait_ms(tokens, terms.tpm, input_tokens, now)
  if wait > 0 then return refused_by('tokens', text(wait)) end
end
local of_scope, of_account = stored_number(found[1], scope_field), stored_number(conc, account .. ' conc')
if of_scope >= terms.concurrency or of_account >= tonumber(ARGV[8]) then return refused_by('concurrency') end
if tokens then
  fields[#fields + 1] = tokens_field
  fields[#fields + 1] = take(tokens, input_tokens)
end

-- The hold.
local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
local expires = text(now + ttl)
local record = cjson.encode({ text(hold), expires, scope, entitlement, key_id, group, unmetered, text(now),
  r1, r2, r3, t1, t2, t3, dear and '1' or '', free and text(free) or '' })
local n = #fields
fields[n + 1], fields[n + 2] = 'conc', text(of_account + 1)
fields[n + 3], fields[n + 4] = scope_field, text(of_scope + 1)
if hold > 0 then fields[n + 5], fields[n + 6] = payer, text(held_before + hold) end
local steps = { { 'HSET', holds, rid, record }, { 'ZADD', expiries, expires, rid } }
if idem then steps[3] = put_mark(idem, rid, fingerprint, 'running', now + ttl) end
change(fields, steps, {}, {})
return { 'admitted', record }
