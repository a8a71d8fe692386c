-- The cards of an account.

-- Cards per HMGET: a call takes about 8,000 names at most.
local CARDS_STEP = 1000

-- The list of cards as of now: the stored one ('es'), unless a card may have left it too early. A card leaves the list
-- long after its end; if it has not ended ('eu', card.lua), the clock was ahead then, and the card is listed again.
-- Returns also the fields to store, or nil if the list is as it was.
local function list_as_of(account, listed, gone, now)
  if not gone or stored_number(gone, account .. ' eu') <= now then return listed, nil end
  local ids, known, cursor = cjson.decode(listed or '[]'), {}, '0'
  for _, id in ipairs(ids) do known[id] = true end
  repeat
    local page = redis.call('HSCAN', account, cursor, 'MATCH', 'e:*', 'COUNT', CARDS_STEP)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local id = string.sub(page[2][i], 3)
      if not known[id] and tonumber(cjson.decode(page[2][i + 1])[5]) > now then
        known[id] = true
        ids[#ids + 1] = id
      end
    end
  until cursor == '0'
  if #ids > 0 then listed = cjson.encode(ids) end
  return listed, { 'es', listed, 'eu', text(now) }
end

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
