-- What a key may see, without side effects.
-- KEYS account; ARGV key hash
local account = KEYS[1]
local now = clock()
local facts = redis.call('HMGET', account, 'k:' .. ARGV[1], 'name', 'plan', 'bal', 'es', 'status')
if not facts[1] then return false end
local cards = {}
for _, card in ipairs(listed_cards(account, facts[5])) do
  if card.to > now then cards[#cards + 1] = card_texts(card) end
end
return { text(now), cjson.encode(key_of(account, facts[1])), facts[2], facts[3], facts[4], cards, facts[6] or 'normal' }
