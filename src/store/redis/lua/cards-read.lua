-- The cards of an account that have not ended, without side effects.
-- KEYS account
local account = KEYS[1]
local now = clock()
local facts = redis.call('HMGET', account, 'name', 'es')
if not facts[1] then return false end
local cards = {}
for _, card in ipairs(listed_cards(account, facts[2])) do
  if card.to > now then cards[#cards + 1] = card_texts(card) end
end
return { text(now), cards }
