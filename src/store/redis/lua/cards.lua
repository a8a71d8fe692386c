-- The cards of an account.

-- Cards per HMGET: a call takes about 8,000 names at most.
local CARDS_STEP = 1000

-- Listed cards, earliest to expire first.
local function listed_cards(account, listed)
  local cards = {}
  if not listed then return cards end
  local ids = cjson.decode(listed)
  for from = 1, #ids, CARDS_STEP do
    local names, to = {}, math.min(from + CARDS_STEP - 1, #ids)
    for i = from, to do
      local id = ids[i]
      names[#names + 1], names[#names + 2], names[#names + 3] = 'e:' .. id, 'ep:' .. id, 'eh:' .. id
    end
    local found = redis.call('HMGET', account, unpack(names))
    for i = from, to do
      local at = 3 * (i - from)
      cards[#cards + 1] = card_of(ids[i], found[at + 1], found[at + 2], found[at + 3])
    end
  end
  table.sort(cards, function(a, b)
    if a.to ~= b.to then return a.to < b.to end
    if a.from ~= b.from then return a.from < b.from end
    return a.id < b.id
  end)
  return cards
end
