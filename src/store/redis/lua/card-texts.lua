-- A card as it is answered, which admission has no need of: id, plan, group, from, until, quota or '', spent, held, card kind or
-- '' (of what was given before kinds were kept).
local function card_texts(account, card)
  local quota = ''
  if card.quota then quota = text(card.quota) end
  local kind = cjson.decode(redis.call('HGET', account, 'e:' .. card.id))[7] or ''
  return { card.id, card.plan, card.group, text(card.from), text(card.to), quota, text(card.spent), text(card.held), kind }
end
