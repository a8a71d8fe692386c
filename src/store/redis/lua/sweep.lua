-- For scripts that write; comes after change.lua and holds.lua.

-- Releases a bounded number of expired holds, earliest first. Returns whether there were any: fields read before are
-- then stale.
local function sweep(account, holds, expiries, now)
  local expired = expired_holds(expiries, now)
  if #expired == 0 then return false end
  local records = redis.call('HMGET', holds, unpack(expired))
  local names, sizes = {}, {}
  local function take_off(name, size)
    if not sizes[name] then names[#names + 1] = name end
    sizes[name] = (sizes[name] or 0) + size
  end
  take_off('conc', 0)
  local released, found_by, kit = {}, {}, nil
  for i, rid in ipairs(expired) do
    if records[i] then
      local record, held = hold_of(rid, records[i])
      if record[4] == '' then take_off('held', held) else take_off('eh:' .. record[4], held) end
      take_off('conc', 1)
      take_off('c:' .. record[3], 1)
      local counted = record[17] or ''
      if string.sub(counted, 1, 1) == 'c' then take_off('kc:' .. record[5], 1) end
      if counted ~= '' and held > 0 then
        kit = kit or budget_kit()
        for _, budget in ipairs(kit.counted(counted, record[5], true)) do
          -- For several holds of one budget: the figures that were read first.
          local known = found_by[budget.field]
          if not known then
            known, found_by[budget.field] = budget, budget
            released[#released + 1] = budget
          end
          kit.at(known, budget.period)
          if known.at then known.figures[known.at + 1] = math.max(0, known.figures[known.at + 1] - held) end
        end
      end
    end
  end
  local found, fields, zeros = redis.call('HMGET', account, unpack(names)), {}, {}
  for i, name in ipairs(names) do
    local left = stored_number(found[i], account .. ' ' .. name) - sizes[name]
    if left <= 0 and (string.sub(name, 1, 2) == 'c:' or string.sub(name, 1, 3) == 'kc:') then
      left = 0
      zeros[#zeros + 1] = name
    end
    fields[#fields + 1] = name
    fields[#fields + 1] = text(left)
  end
  for _, budget in ipairs(released) do
    fields[#fields + 1] = budget.field
    fields[#fields + 1] = kit.text(budget.figures)
  end
  change(fields, { { 'HDEL', holds, unpack(expired) }, { 'ZREM', expiries, unpack(expired) } }, zeros, {})
  return true
end
