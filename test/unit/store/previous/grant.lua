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

-- Entitlements: 'e:<id>' what never changes, 'ep:<id>' spent, 'eh:<id>' held, 'es' the ids that may still run.

local function card_of(account, id)
  local fields = redis.call('HMGET', account, 'e:' .. id, 'ep:' .. id, 'eh:' .. id)
  if not fields[1] then return nil end
  local e = cjson.decode(fields[1])
  local card = { id = e[1], plan = e[2], group = e[3], from = tonumber(e[4]), to = tonumber(e[5]), quota = nil,
    spent = tonumber(fields[2] or '0'), held = tonumber(fields[3] or '0') }
  if e[6] ~= '' then card.quota = tonumber(e[6]) end
  return card
end

-- Listed cards, earliest to expire first.
local function listed_cards(account, ids)
  local cards = {}
  if not ids then return cards end
  for _, id in ipairs(cjson.decode(ids)) do
    local card = card_of(account, id)
    if card then cards[#cards + 1] = card end
  end
  table.sort(cards, function(a, b)
    if a.to ~= b.to then return a.to < b.to end
    if a.from ~= b.from then return a.from < b.from end
    return a.id < b.id
  end)
  return cards
end

-- A card as texts: id, plan, group, from, until, quota or '', spent, held.
local function card_texts(card)
  local quota = ''
  if card.quota then quota = text(card.quota) end
  return { card.id, card.plan, card.group, text(card.from), text(card.to), quota, text(card.spent), text(card.held) }
end

-- Gives an account what a card holds, once per entitlement id.
-- KEYS account ledger
-- ARGV id, plan, group, lasts ms, '1' to follow the group's last card, quota or '', reference, ledger account, linger ms,
--      ledger account that the card comes from, when it began (given again) or ''
local account, ledger = KEYS[1], KEYS[2]
local id, group, lasts, quota = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[6]
if not (lasts > 0 and lasts <= AMOUNT_MAX) then return bad('lasts') end
if quota ~= '' and not amount(quota) then return bad('quota') end

local now = clock()
local facts = redis.call('HMGET', account, 'name', 'es')
if not facts[1] then return false end
local known = card_of(account, id)
if known then return card_texts(known) end

local from, listed = now, {}
for _, card in ipairs(listed_cards(account, facts[2])) do
  if ARGV[5] == '1' and card.group == group then from = math.max(from, card.to) end
  -- Long after its end a card leaves the list that admission reads, so that old customers cost no more than new ones.
  if card.to > now - tonumber(ARGV[9]) then listed[#listed + 1] = card.id end
end
from = tonumber(ARGV[11]) or from
listed[#listed + 1] = id
redis.call('HSET', account, 'e:' .. id, cjson.encode({ id, ARGV[2], group, text(from), text(from + lasts), quota }),
  'ep:' .. id, '0', 'eh:' .. id, '0', 'es', cjson.encode(listed))
line(account, ledger, now, 'card', ARGV[10], ARGV[8], amount(quota) or 0, ARGV[7], group, '', '', '')
return card_texts(card_of(account, id))
