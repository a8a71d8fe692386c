-- Decides a request: key, plan, group, funds, limits, hold. embedded/admit.ts decides the same.
-- KEYS account holds expiries settled, and the idempotency key's if the request has one
-- ARGV a JSON list: rid, key hash, plans, groups, input tokens, hold life in ms, '1' if the request bucket has counted
-- this request before, most requests in flight per account, fingerprint under the idempotency key or '', the model's
-- name, bits of the client's address or ''
-- A group is name, kind, holdFull, holdMin, rpm, tpm, concurrency, perKey, the worst-case holdFull and holdMin or ''
-- twice, '1' if the balance pays when no card does.

local holds, expiries, settled, idem = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local args = cjson.decode(ARGV[1])
local rid, input_tokens, ttl = args[1], tonumber(args[5]), tonumber(args[6])
local fingerprint, model, address = args[9], args[10], args[11]

local plans = {}
for _, plan in ipairs(args[3]) do plans[plan] = true end
if not (input_tokens >= 0 and input_tokens <= AMOUNT_MAX) then return bad('tokens') end
if not (ttl > 0 and ttl <= AMOUNT_MAX) then return bad('ttl') end

local function refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
  return { 'refused', cause, group or '', wait or '', r1 or '', r2 or '', r3 or '', t1 or '', t2 or '', t3 or '' }
end

local function read()
  return unpack(redis.call('HMGET', account, 'todo', 'k:' .. args[2], 'plan', 'es', 'bal', 'held', 'conc', 'tb:over', 'lim',
    'status', 'eu'))
end

local now = clock()
local todo, stored_key, plan, listed, bal, held, conc, over, account_limits, status, gone = read()
if not stored_key then return refused('unknown_key') end
local key = key_of(account, stored_key)
local key_id, group = key[1], key[2]
local barred = key_barred(key, now, status)
if barred then return refused(barred, group) end
local kit = has_limits(key, account_limits) and limit_kit()
local limits = kit and kit.limits_of(key, account_limits)
if limits and not kit.allows_address(limits, address) then return refused('address_not_allowed', group) end
if todo then finish(todo) end

local before = redis.call('HGET', holds, rid)
if before then return before end
local mark = redis.call('GET', settled)
if mark then
  local record = cjson.decode(mark)[2]
  -- Voided before it was admitted: an ask that arrives after its own withdrawal holds nothing and is not sent.
  if record == '' then return refused('concurrency', group) end
  return record
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

-- The terms of the key's group for this request.
local terms
local worst_case = over and needs_worst_case_hold(over, now)
for _, g in ipairs(args[4]) do
  if g[1] == group and not terms then
    terms = { kind = g[2], full = amount(g[3]), least = amount(g[4]), rpm = tonumber(g[5]), tpm = tonumber(g[6]),
      concurrency = tonumber(g[7]), per_key = g[8] == '1' }
    terms.fallback = g[11] == '1'
    worst_case = worst_case and g[9] ~= '' and g[9]
    if worst_case then terms.full, terms.least = amount(g[9]), amount(g[10]) end
    if not terms.full or not terms.least or not (terms.least <= terms.full) then return bad('hold') end
    if not terms.concurrency then return bad('concurrency') end
  end
end
local running, of_group, planned = {}, 0, plans[plan]
local relisted
listed, relisted = list_as_of(account, listed, gone, now)
if relisted then redis.call('HSET', account, unpack(relisted)) end
for _, card in ipairs(listed_cards(account, listed)) do
  if card.from <= now and now < card.to then
    running[#running + 1] = card
    if card.group == group then of_group = of_group + 1 end
    if plans[card.plan] then planned = true end
  end
end
if terms and terms.kind == 'time_card' and not terms.fallback and of_group == 0 then return refused('no_entitlement', group) end
if not planned then return refused('not_in_plan', group) end
if not terms then return refused('group_mismatch', group) end

if limits and not kit.allows_model(limits, model) then return refused('model_not_allowed', group) end

-- Funds: who pays, how much of it is held already, and how much is left.
local payer, entitlement, unmetered = 'held', '', '0'
local held_before, available = stored_number(held, account .. ' held'), nil
if terms.kind == 'time_card' then
  local cause = 'no_entitlement'
  for _, card in ipairs(running) do
    if not available and card.group == group and plans[card.plan] then
      cause = 'quota_used'
      if not card.quota then
        available, entitlement, unmetered = 0, card.id, '1'
      else
        local rest = card.quota - card.spent - card.held
        if rest >= terms.least then
          available, entitlement, payer, held_before = rest, card.id, 'eh:' .. card.id, card.held
        end
      end
    end
  end
  if not available and not terms.fallback then return refused(cause, group) end
end
if not available then
  available = stored_number(bal, account .. ' bal') - held_before
  if not (available >= terms.least) then return refused('insufficient_balance', group) end
end

-- Budgets of the key and of its account, and what the request holds of them.
local budgets, purse, hold, free = {}, nil, 0, nil
if unmetered == '0' then
  if limits then
    purse = budget_kit()
    budgets = purse.open(limits, key_id, now)
    for _, budget in ipairs(budgets) do
      if budget.rest < terms.least then
        local cause, ends = 'key_budget', purse.ends(budget.letter, budget.figures[1])
        if budget.letter == string.upper(budget.letter) then cause = 'account_budget' end
        local reply = refused(cause, group)
        reply[11], reply[12], reply[13], reply[14] = '', budget.letter, '', ends and text(ends) or ''
        reply[15], reply[16] = text(budget.limit), key_id
        return reply
      end
    end
    for _, budget in ipairs(budgets) do available = math.min(available, budget.rest) end
  end
  hold = math.min(available, terms.full)
  free = available - hold
end

-- Rate limits, the key's own before its group's. A refused request leaves in the request buckets what they have
-- counted.
local scope = group
if terms.per_key then scope = group .. '/' .. key_id end
local requests_field, tokens_field, scope_field = 'tb:' .. scope .. ':r', 'tb:' .. scope .. ':t', 'c:' .. scope
local own_requests_field, own_tokens_field, key_field
local found
if limits then
  own_requests_field, own_tokens_field = 'tb:*/' .. key_id .. ':r', 'tb:*/' .. key_id .. ':t'
  key_field = 'kc:' .. key_id
  found = redis.call('HMGET', account, scope_field, requests_field, tokens_field, own_requests_field, own_tokens_field,
    key_field)
else
  found = redis.call('HMGET', account, scope_field, requests_field, tokens_field)
end
local requests = terms.rpm and drain(found[2], terms.rpm, now)
local tokens = terms.tpm and drain(found[3], terms.tpm, now)
local own = limits or {}
local own_requests = own.rpm and drain(found[4], own.rpm, now)
local own_tokens = own.tpm and drain(found[5], own.tpm, now)
local fields = {}

-- The bucket states that a client is shown: for each kind the bucket with less left, the key's if both are equal.
local function states()
  local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
  local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
  if own_requests then
    local x1, x2, x3 = bucket_texts(own_requests, own.rpm, now)
    if r1 == '' or tonumber(x2) <= tonumber(r2) then r1, r2, r3 = x1, x2, x3 end
  end
  if own_tokens then
    local x1, x2, x3 = bucket_texts(own_tokens, own.tpm, now)
    if t1 == '' or tonumber(x2) <= tonumber(t2) then t1, t2, t3 = x1, x2, x3 end
  end
  return r1, r2, r3, t1, t2, t3
end

-- `figure`: the key's own limit, if that refuses; 'account' if the account's concurrency limit refuses.
local function refused_by(cause, wait, figure)
  if #fields > 0 then redis.call('HSET', account, unpack(fields)) end
  local reply = refused(cause, group, wait and text(wait), states())
  if figure then reply[11], reply[12], reply[13] = '', '', figure == 'account' and figure or text(figure) end
  return reply
end

-- How long the request must wait for a bucket; 0 without one.
local function wait_of(bucket, limit, count)
  return bucket and wait_ms(bucket, limit, count, now) or 0
end

-- Takes from a bucket, if there is one.
local function take_from(field, bucket, count)
  if not bucket then return end
  local n = #fields
  fields[n + 1], fields[n + 2] = field, take(bucket, count)
end

if args[7] ~= '1' then
  local wait = wait_of(own_requests, own.rpm, 1)
  if wait > 0 then return refused_by('requests', wait, own.rpm) end
  wait = wait_of(requests, terms.rpm, 1)
  if wait > 0 then return refused_by('requests', wait) end
  take_from(own_requests_field, own_requests, 1)
  take_from(requests_field, requests, 1)
end
local wait = wait_of(own_tokens, own.tpm, input_tokens)
if wait > 0 then return refused_by('tokens', wait, own.tpm) end
wait = wait_of(tokens, terms.tpm, input_tokens)
if wait > 0 then return refused_by('tokens', wait) end
local of_scope, of_account = stored_number(found[1], scope_field), stored_number(conc, account .. ' conc')
local of_key = own.par and stored_number(found[6], key_field)
if of_key and of_key >= own.par then return refused_by('concurrency', nil, own.par) end
if of_scope >= terms.concurrency then return refused_by('concurrency') end
if of_account >= tonumber(args[8]) then return refused_by('concurrency', nil, 'account') end
take_from(own_tokens_field, own_tokens, input_tokens)
take_from(tokens_field, tokens, input_tokens)

-- The hold.
local r1, r2, r3, t1, t2, t3 = states()
local expires = text(now + ttl)
local counted = ''
if limits then
  local words = {}
  if own.par then words[1] = 'c' end
  if own.tpm then words[#words + 1] = 'k' end
  for _, budget in ipairs(budgets) do words[#words + 1] = budget.letter .. text(budget.figures[1]) end
  counted = table.concat(words, ' ')
end
local record = cjson.encode({ text(hold), expires, scope, entitlement, key_id, group, unmetered, text(now),
  r1, r2, r3, t1, t2, t3, worst_case and '1' or '', free and text(free) or '', counted })
if hold > 0 and purse then
  for _, budget in ipairs(budgets) do budget.at = 2 end
  purse.move(fields, budgets, 0, hold)
end
if of_key then
  fields[#fields + 1] = key_field
  fields[#fields + 1] = text(of_key + 1)
end
local n = #fields
fields[n + 1], fields[n + 2] = 'conc', text(of_account + 1)
fields[n + 3], fields[n + 4] = scope_field, text(of_scope + 1)
if hold > 0 then fields[n + 5], fields[n + 6] = payer, text(held_before + hold) end
local steps = { { 'HSET', holds, rid, record }, { 'ZADD', expiries, expires, rid } }
if idem then steps[3] = put_mark(idem, rid, fingerprint, 'running', now + ttl) end
change(fields, steps, {}, {})
return record
