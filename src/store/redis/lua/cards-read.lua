-- The listed cards of an account that have not ended, or all of them, without side effects.
-- KEYS account; ARGV '1' for all of them
local account = KEYS[1]
local now = clock()
local facts = redis.call('HMGET', account, 'name', 'es')
if not facts[1] then return false end
local cards = {}
for _, card in ipairs(listed_cards(account, facts[2])) do
  if card.to > now or ARGV[1] == '1' then cards[#cards + 1] = card_texts(account, card) end
end
return { text(now), cards }
