-- Gives an account what a card contains, once per entitlement id.
-- KEYS account ledger
-- ARGV id, plan, group, lasts ms, '1' to follow the group's last card, quota or '', reference, ledger account, linger
-- ms, ledger account that the card comes from, in a replay when it began, otherwise '', card kind
local ledger = KEYS[2]
local id, group, lasts, quota = ARGV[1], ARGV[3], tonumber(ARGV[4]), ARGV[6]
if not (lasts > 0 and lasts <= AMOUNT_MAX) then return bad('lasts') end
if quota ~= '' and not amount(quota) then return bad('quota') end

local function read()
  return unpack(redis.call('HMGET', account, 'todo', 'name', 'es', 'bal', 'seq', 'eu'))
end

local now = clock()
local todo, name, ids, bal, seq, gone = read()
if not name then return false end
if todo then
  finish(todo)
  todo, name, ids, bal, seq, gone = read()
end
local given = read_card(account, id)
if given then return card_texts(account, given) end

local from, listed, relisted = now, {}, nil
ids, relisted = list_as_of(account, ids, gone, now)
local gone_until = relisted and now or stored_number(gone, account .. ' eu')
for _, card in ipairs(listed_cards(account, ids)) do
  if ARGV[5] == '1' and card.group == group then from = math.max(from, card.to) end
  -- Long after its end a card leaves the list that admission reads, so that long-time customers cost no more than new
  -- ones.
  if card.to > now - tonumber(ARGV[9]) then
    listed[#listed + 1] = card.id
  else
    gone_until = math.max(gone_until, card.to)
  end
end
from = tonumber(ARGV[11]) or from
listed[#listed + 1] = id
local fixed = cjson.encode({ id, ARGV[2], group, text(from), text(from + lasts), quota, ARGV[12] })
local worth = text(amount(quota) or 0)
seq = text(stored_number(seq, account .. ' seq') + 1)
local fields = { 'e:' .. id, fixed, 'ep:' .. id, '0', 'eh:' .. id, '0', 'es', cjson.encode(listed), 'seq', seq }
if gone_until > 0 then fields[11], fields[12] = 'eu', text(gone_until) end
change(fields, {
  line(ledger, seq, text(now), 'card', ARGV[10], ARGV[8], worth, bal, ARGV[7], group, '', '', ''),
}, {}, {})
return card_texts(account, card_of(id, fixed, '0', '0'))
