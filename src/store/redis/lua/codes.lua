-- Codes: one hash each, in a slot of its own. What a code is worth never changes. Its state changes from unused to
-- claimed to redeemed, or from unused to void (docs/failure-model.md invariant 11).

-- A code as texts: id, card, plan, group, lasts, starts, quota or '', state, created, tag or '', claimed at or '',
-- expires or '', batch or ''. Versions before batches do not have the last two.
local function code_texts(code)
  local texts = redis.call('HMGET', code, 'id', 'card', 'plan', 'group', 'lasts', 'starts', 'quota', 'state', 'created',
    'tag', 'claimed', 'expires', 'batch')
  if not texts[1] then return false end
  for i = 1, 13 do texts[i] = texts[i] or '' end
  return texts
end
