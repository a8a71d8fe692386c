-- What a key may see, without side effects.
-- KEYS account; ARGV key hash
local account = KEYS[1]
local now = clock()
local facts = redis.call('HMGET', account, 'k:' .. ARGV[1], 'name', 'plan', 'bal', 'es', 'lim', 'b:D', 'b:W', 'b:M', 'b:T',
  'status')
if not facts[1] then return false end
local key = key_of(account, facts[1])
local cards = {}
for _, card in ipairs(listed_cards(account, facts[5])) do
  if card.to > now then cards[#cards + 1] = card_texts(account, card) end
end
local id = key[1]
local own = redis.call('HMGET', account, 'b:d/' .. id, 'b:w/' .. id, 'b:m/' .. id, 'b:t/' .. id)
return { text(now), cjson.encode(key), facts[2], facts[3], facts[4], cards, facts[6] or '',
  facts[11] or 'normal', own[1] or '', own[2] or '', own[3] or '', own[4] or '', facts[7] or '', facts[8] or '', facts[9] or '', facts[10] or '' }
