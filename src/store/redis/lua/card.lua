-- Entitlements: 'e:<id>' the constant part, 'ep:<id>' spent, 'eh:<id>' held, 'es' the ids that may still run,
-- 'eu' an instant after which no card ends that has left this list.

local function card_of(id, fixed, spent, held)
  if not fixed then return nil end
  local e = cjson.decode(fixed)
  local card = { id = e[1], plan = e[2], group = e[3], from = tonumber(e[4]), to = tonumber(e[5]), quota = nil,
    spent = stored_number(spent, 'spent on ' .. id), held = stored_number(held, 'held of ' .. id) }
  if e[6] ~= '' then card.quota = tonumber(e[6]) end
  return card
end

local function read_card(account, id)
  return card_of(id, unpack(redis.call('HMGET', account, 'e:' .. id, 'ep:' .. id, 'eh:' .. id)))
end
