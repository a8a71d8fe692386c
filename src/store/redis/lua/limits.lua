-- Limits of a key, in addition to those of its group, and of its account (store/limits/limits.ts defines the stored
-- text). A key has two sets, its owner's limits and the operator's caps, texts 12 and 13 of its record; the strictest
-- figure of each kind applies.
-- A script defines its functions again on each run, so these are made only if something is limited.

local function limit_kit()
  local SPANS = { 'day', 'week', 'month', 'total' }
  local LETTERS = { day = 'd', week = 'w', month = 'm', total = 't' }

  -- The limits of a key as one table: `sets`; the strictest figures `rpm`, `tpm` and `par`; `budgets`, the limits by
  -- letter (the account's in uppercase); `operators`, the same without the owner's own. Nil when nothing is limited.
  local function limits_of(key, of_account)
    local texts = { key[12] or '', key[13] or '' }
    if texts[1] == '' and texts[2] == '' and (of_account or '') == '' then return nil end
    local limits = { sets = {}, budgets = {}, operators = {} }
    local function strictest(into, name, s)
      local n = tonumber(s)
      if n and (not into[name] or n < into[name]) then into[name] = n end
    end
    for i = 1, 2 do
      if texts[i] ~= '' then
        local set = cjson.decode(texts[i])
        limits.sets[#limits.sets + 1] = set
        for _, span in ipairs(SPANS) do
          strictest(limits.budgets, LETTERS[span], set[span])
          if i == 2 then strictest(limits.operators, LETTERS[span], set[span]) end
        end
        for _, name in ipairs({ 'rpm', 'tpm', 'par' }) do strictest(limits, name, set[name]) end
      end
    end
    if (of_account or '') ~= '' then
      local set = cjson.decode(of_account)
      for _, span in ipairs(SPANS) do
        local letter = string.upper(LETTERS[span])
        strictest(limits.budgets, letter, set[span])
        strictest(limits.operators, letter, set[span])
      end
    end
    return limits
  end

  -- Whether every set that has such a list has an entry in it for which `fits` holds.
  local function all_allow(limits, list, fits)
    for _, set in ipairs(limits.sets) do
      if set[list] then
        local allowed = false
        for _, entry in ipairs(set[list]) do allowed = allowed or fits(entry) end
        if not allowed then return false end
      end
    end
    return true
  end

  -- Names of models, or prefixes that end with '*'.
  local function allows_model(limits, model)
    return all_allow(limits, 'models', function(name)
      if string.sub(name, -1) ~= '*' then return name == model end
      return string.sub(model, 1, #name - 1) == string.sub(name, 1, -2)
    end)
  end

  -- Each entry is a block as written, and the bits that its addresses begin with.
  local function allows_address(limits, bits)
    return all_allow(limits, 'from', function(block)
      return bits ~= '' and string.sub(bits, 1, #block[2]) == block[2]
    end)
  end

  return { limits_of = limits_of, allows_model = allows_model, allows_address = allows_address }
end

-- Whether anything is limited for a key.
local function has_limits(key, of_account)
  return (key[12] or '') ~= '' or (key[13] or '') ~= '' or (of_account or '') ~= ''
end
