-- The cards of an account.

-- Listed cards, earliest to expire first.
local function listed_cards(account, listed)
  local cards, names = {}, {}
  if not listed then return cards end
  local ids = cjson.decode(listed)
  if #ids == 0 then return cards end
  for i, id in ipairs(ids) do
    names[3 * i - 2], names[3 * i - 1], names[3 * i] = 'e:' .. id, 'ep:' .. id, 'eh:' .. id
  end
  local found = redis.call('HMGET', account, unpack(names))
  for i, id in ipairs(ids) do
    cards[#cards + 1] = card_of(id, found[3 * i - 2], found[3 * i - 1], found[3 * i])
  end
  table.sort(cards, function(a, b)
    if a.to ~= b.to then return a.to < b.to end
    if a.from ~= b.from then return a.from < b.from end
    return a.id < b.id
  end)
  return cards
end
