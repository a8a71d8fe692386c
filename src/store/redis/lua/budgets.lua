-- Budgets: what a key or an account spends in a UTC day ('d'), a week from Monday ('w'), a month ('m'), or in total
-- ('t'); an account's letters are uppercase. The same arithmetic as in store/limits/budgets.ts, line by line. Field
-- 'b:d/<key id>', or 'b:D', is '<period> <spent> <held>' twice: for the latest period, and for the one before it, in
-- which long requests end. The 17th text of a hold says what the request is counted in: 'c' its key's requests in
-- flight, 'k' its key's tokens, 'd20775' a budget's period.

local function budget_kit()
  local LETTERS_IN_ORDER = { 'd', 'w', 'm', 't', 'D', 'W', 'M', 'T' }

  -- The month of a day (since the epoch), counted from year 0, and the first day of a month: the civil calendar in
  -- integers.
  local function month_of(day)
    local z = day + 719468
    local era = math.floor(z / 146097)
    local doe = z - era * 146097
    local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
    local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
    local mp = math.floor((5 * doy + 2) / 153)
    -- Years begin in March here.
    return (yoe + era * 400) * 12 + mp + 2
  end

  local function first_day_of(month)
    local from_march = month - 2
    local year, mp = math.floor(from_march / 12), from_march % 12
    local era = math.floor(year / 400)
    local yoe = year - era * 400
    local doy = math.floor((153 * mp + 2) / 5)
    return era * 146097 + yoe * 365 + math.floor(yoe / 4) - math.floor(yoe / 100) + doy - 719468
  end

  local function period_of(letter, now)
    local kind, day = string.lower(letter), math.floor(now / 86400000)
    if kind == 'd' then return day end
    if kind == 'w' then return math.floor((day + 3) / 7) end
    if kind == 'm' then return month_of(day) end
    return 0
  end

  -- The first instant after a period; nil for a budget without an end.
  local function period_end(letter, period)
    local kind = string.lower(letter)
    if kind == 'd' then return (period + 1) * 86400000 end
    if kind == 'w' then return ((period + 1) * 7 - 3) * 86400000 end
    if kind == 'm' then return first_day_of(period + 1) * 86400000 end
  end

  local function budget_field(letter, key_id)
    if letter == string.upper(letter) then return 'b:' .. letter end
    return 'b:' .. letter .. '/' .. key_id
  end

  local function budget_read(stored, field)
    local b = {}
    for figure in string.gmatch(stored, '%d+') do b[#b + 1] = stored_number(figure, field) end
    if #b ~= 6 then damaged(account .. ' ' .. field) end
    return b
  end

  -- A budget's figures with those of `period` among them: as the latest, unless a later one is recorded. Period, spent,
  -- held, and the same for the period before. A clock that goes back reopens no period.
  local function budget_of(stored, period, field)
    if not stored then return { period, 0, 0, 0, 0, 0 } end
    local b = budget_read(stored, field)
    if period > b[1] and period ~= b[4] then return { period, 0, 0, b[1], b[2], b[3] } end
    return b
  end

  -- The same for the current period. A later period goes on if it is the next one. Any other was recorded while the
  -- clock was wrong, or the clock is wrong now: its figures stay as those of the period before, and the budget continues
  -- in the current one. Otherwise it would not begin again until the clock is there.
  local function budget_as_of_now(stored, period, field)
    if not stored then return { period, 0, 0, 0, 0, 0 } end
    local b = budget_read(stored, field)
    if b[1] == period then return b end
    local later, earlier = 1, 4
    if b[1] < b[4] then later, earlier = 4, 1 end
    local now, before = nil, later
    if b[later] <= period + 1 then
      if b[later] >= period then now, before = later, earlier end
    elseif b[earlier] >= period and b[earlier] <= period + 1 then
      now = earlier
    elseif b[earlier] > 0 and b[earlier] < period then
      before = earlier
    end
    if not now then return { period, 0, 0, b[before], b[before + 1], b[before + 2] } end
    return { b[now], b[now + 1], b[now + 2], b[before], b[before + 1], b[before + 2] }
  end

  local function budget_text(b)
    return string.format('%d %d %d %d %d %d', unpack(b))
  end

  -- The position of a period's spent figure; its held figure follows. Nil: it ended so long ago that nothing is kept of
  -- it.
  local function budget_place(b, period)
    if period == b[1] then return 2 end
    if period == b[4] and period ~= 0 then return 5 end
  end

  -- Sets the position of a period's figures.
  local function budget_at(budget, period)
    budget.at = budget_place(budget.figures, period)
  end

  -- The budgets that the limits contain, in their order, as of now: letter, field, figures, limit, rest.
  local function open_budgets(limits, key_id, now)
    local open, fields = {}, {}
    for _, letter in ipairs(LETTERS_IN_ORDER) do
      local limit = limits.budgets[letter]
      if limit then
        local field = budget_field(letter, key_id)
        open[#open + 1], fields[#fields + 1] = { letter = letter, field = field, limit = limit }, field
      end
    end
    if #open == 0 then return open end
    for i, stored in ipairs(redis.call('HMGET', account, unpack(fields))) do
      local budget = open[i]
      budget.figures = budget_as_of_now(stored, period_of(budget.letter, now), budget.field)
      -- Zero, not negative, when the budget was lowered below its spending, so that free requests still pass.
      budget.rest = math.max(0, budget.limit - budget.figures[2] - budget.figures[3])
    end
    return open
  end

  -- The budgets that a hold or a settlement is counted in: letter, field, figures, position. `as_stored`: no period is
  -- opened for it. `is_new`: it is not opened in the store.
  local function counted_budgets(counted, key_id, as_stored)
    local found, fields = {}, {}
    for letter, period in string.gmatch(counted, '([dwmtDWMT])(%d+)') do
      local field = budget_field(letter, key_id)
      found[#found + 1], fields[#fields + 1] = { letter = letter, field = field, period = tonumber(period) }, field
    end
    if #found == 0 then return found end
    for i, stored in ipairs(redis.call('HMGET', account, unpack(fields))) do
      local budget = found[i]
      budget.figures = budget_of(stored, as_stored and 0 or budget.period, budget.field)
      budget.is_new = not stored or budget.figures[1] ~= tonumber(string.match(stored, '^%d+'))
      budget.at = budget_place(budget.figures, budget.period)
    end
    return found
  end

  -- What counted budgets leave beyond all holds except `own`, by the present limits. `whose`: 'budgets' (all) or
  -- 'operators'. Nil when no budget limits it.
  local function rest_of(budgets, limits, whose, own)
    local rest
    for _, budget in ipairs(budgets) do
      local limit = limits and limits[whose][budget.letter]
      if limit and budget.at then
        local left = limit - budget.figures[budget.at] - (budget.figures[budget.at + 1] - own)
        if not rest or left < rest then rest = left end
      end
    end
    return rest
  end

  -- Adds to the spent and held figures of counted budgets, in the fields that `change` writes.
  local function move_budgets(fields, budgets, spent, held)
    for _, budget in ipairs(budgets) do
      -- A hold whose period was dropped leaves nothing to release.
      if budget.at and (spent ~= 0 or held > 0 or (held < 0 and not budget.is_new)) then
        local b, at = budget.figures, budget.at
        b[at], b[at + 1] = math.min(AMOUNT_MAX, b[at] + spent), math.max(0, b[at + 1] + held)
        local n = #fields
        fields[n + 1], fields[n + 2] = budget.field, budget_text(b)
      end
    end
  end

  -- The present limits of a key, found by its id, and of its account.
  local function limits_now(key_id)
    local found = redis.call('HMGET', account, 'ki:' .. key_id, 'lim')
    local stored = found[1] and redis.call('HGET', account, 'k:' .. found[1])
    return limit_kit().limits_of(stored and cjson.decode(stored) or {}, found[2])
  end

  return {
    open = open_budgets,
    ends = period_end,
    counted = counted_budgets,
    rest = rest_of,
    move = move_budgets,
    limits_now = limits_now,
    at = budget_at,
    text = budget_text,
  }
end
