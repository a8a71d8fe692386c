-- A card as replied, with texts that admission does not need: id, plan, group, from, until, quota or '', spent, held,
-- card kind or '' (of a card that was given before kinds were stored).
local function card_texts(account, card)
  local quota = ''
  if card.quota then quota = text(card.quota) end
  local kind = cjson.decode(redis.call('HGET', account, 'e:' .. card.id))[7] or ''
  return { card.id, card.plan, card.group, text(card.from), text(card.to), quota, text(card.spent), text(card.held), kind }
end
