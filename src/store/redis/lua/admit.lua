-- Decides a request: key, plan, group, funds, limits, hold (DESIGN.md section 3). embedded/admit.ts decides the same.
-- KEYS account holds expiries settled, and the idempotency key's where the request has one
-- ARGV rid, key hash, plans (JSON), groups (JSON: name kind holdFull holdMin rpm tpm concurrency perKey), input tokens,
--      hold life in ms, '1' when the request bucket was taken from before, most requests in flight per account,
--      fingerprint under the idempotency key or ''

local account, holds, expiries, settled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local rid, input_tokens, ttl = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[6])
local idem, fingerprint = KEYS[5], ARGV[9]

local plans = {}
for _, plan in ipairs(cjson.decode(ARGV[3])) do plans[plan] = true end
local groups = {}
for _, g in ipairs(cjson.decode(ARGV[4])) do
  local full, least = amount(g[3]), amount(g[4])
  if not full or not least or not (least <= full) then return bad('hold') end
  if not tonumber(g[7]) then return bad('concurrency') end
  if not groups[g[1]] then
    groups[g[1]] = { kind = g[2], full = full, least = least, rpm = tonumber(g[5]), tpm = tonumber(g[6]),
      concurrency = tonumber(g[7]), per_key = g[8] == '1' }
  end
end
if not (input_tokens >= 0 and input_tokens <= AMOUNT_MAX) then return bad('tokens') end
if not (ttl > 0 and ttl <= AMOUNT_MAX) then return bad('ttl') end

local function refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
  return { 'refused', cause, group or '', wait or '', r1 or '', r2 or '', r3 or '', t1 or '', t2 or '', t3 or '' }
end

local now = clock()
local facts = redis.call('HMGET', account, 'k:' .. ARGV[2], 'bal', 'plan', 'es')
if not facts[1] then return refused('unknown_key') end
local key = cjson.decode(facts[1])
local key_id, group = key[1], key[2]
if key[3] == 'revoked' then return refused('revoked_key', group) end

local before = redis.call('HGET', holds, rid)
if before then return { 'admitted', before } end
local mark = redis.call('GET', settled)
if mark then
  local record = cjson.decode(mark)[2]
  -- Voided before it was admitted: an ask that arrives after its own withdrawal holds nothing and goes nowhere.
  if record == '' then return refused('concurrency', group) end
  return { 'admitted', record }
end
sweep(account, holds, expiries, now)

if idem then
  local taken = key_mark(idem, now)
  local cause = key_refusal(taken, fingerprint)
  if cause then
    local reply = refused(cause, group)
    reply[11] = taken[1]
    return reply
  end
end

local terms = groups[group]
local running, of_group, planned = {}, 0, plans[facts[3]]
for _, card in ipairs(listed_cards(account, facts[4])) do
  if card.from <= now and now < card.to then
    running[#running + 1] = card
    if card.group == group then of_group = of_group + 1 end
    if plans[card.plan] then planned = true end
  end
end
if terms and terms.kind == 'time_card' and of_group == 0 then return refused('no_entitlement', group) end
if not planned then return refused('not_in_plan', group) end
if not terms then return refused('group_mismatch', group) end

-- Funds.
local hold, entitlement, unmetered = nil, '', '0'
if terms.kind == 'time_card' then
  local cause = 'no_entitlement'
  for _, card in ipairs(running) do
    if not hold and card.group == group and plans[card.plan] then
      cause = 'quota_used'
      if not card.quota then
        hold, entitlement, unmetered = 0, card.id, '1'
      else
        local rest = card.quota - card.spent - card.held
        if rest >= terms.least then hold, entitlement = math.min(rest, terms.full), card.id end
      end
    end
  end
  if not hold then return refused(cause, group) end
else
  local held = tonumber(redis.call('HGET', account, 'held') or '0')
  local free = tonumber(facts[2]) - held
  if not (free >= terms.least) then return refused('insufficient_balance', group) end
  hold = math.min(free, terms.full)
end

-- Limits.
local scope = group
if terms.per_key then scope = group .. '/' .. key_id end
local requests_field, tokens_field = 'tb:' .. scope .. ':r', 'tb:' .. scope .. ':t'
local requests = terms.rpm and drain(account, requests_field, terms.rpm, now)
local tokens = terms.tpm and drain(account, tokens_field, terms.tpm, now)

local function refused_by(cause, wait)
  local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
  local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
  return refused(cause, group, wait, r1, r2, r3, t1, t2, t3)
end

if requests and ARGV[7] ~= '1' then
  local wait = wait_ms(requests, terms.rpm, 1, now)
  if wait > 0 then return refused_by('requests', text(wait)) end
  take(account, requests_field, requests, 1)
end
if tokens then
  local wait = wait_ms(tokens, terms.tpm, input_tokens, now)
  if wait > 0 then return refused_by('tokens', text(wait)) end
end
local in_flight = redis.call('HMGET', account, 'c:' .. scope, 'conc')
if tonumber(in_flight[1] or '0') >= terms.concurrency or tonumber(in_flight[2] or '0') >= tonumber(ARGV[8]) then
  return refused_by('concurrency')
end
if idem then put_mark(idem, rid, fingerprint, 'running', now + ttl) end
if tokens then take(account, tokens_field, tokens, input_tokens) end

-- The hold.
local r1, r2, r3 = bucket_texts(requests, terms.rpm, now)
local t1, t2, t3 = bucket_texts(tokens, terms.tpm, now)
local expires = text(now + ttl)
local record = cjson.encode({ text(hold), expires, scope, entitlement, key_id, group, unmetered, text(now),
  r1, r2, r3, t1, t2, t3 })
redis.call('HSET', holds, rid, record)
redis.call('ZADD', expiries, expires, rid)
if hold > 0 then
  local field = 'held'
  if entitlement ~= '' then field = 'eh:' .. entitlement end
  redis.call('HINCRBY', account, field, text(hold))
end
redis.call('HINCRBY', account, 'conc', '1')
redis.call('HINCRBY', account, 'c:' .. scope, '1')
return { 'admitted', record }
