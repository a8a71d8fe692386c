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
