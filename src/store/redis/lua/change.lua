-- How a script changes an account. A command can fail, and Redis rolls nothing back. So the first write is one HSET of
-- the account with all its changed fields and the redo record (field `todo`): the commands on its other keys that still
-- have to run. Then these commands run, and the record is removed. A script that stops half-way leaves either the old
-- state or a redo record. The next script on the account finishes that record before it trusts any data
-- (docs/decisions/a-script-that-stops-is-finished-by-the-next.md).
--
-- Each command can be run again without harm: its figures are absolute, and an XADD does not run if its line exists.

local account = KEYS[1]

-- `fields`: names and values alternating; `steps`: the commands; `zeros`: counters at zero, whose fields are removed
-- together with the redo record; `before`: for each step that sets sums, its index and the former values of its fields
-- (false if there was none). Ends the script unless everything after the first write is allowed.
local function change(fields, steps, zeros, before)
  local call, may = redis.call, redis.acl_check_cmd
  for i = 1, #steps do
    local step = steps[i]
    if not may(step[1], step[2]) then error({ err = 'NORIGHT ' .. step[1] .. ' ' .. step[2] }) end
  end
  if not may('HDEL', account) then error({ err = 'NORIGHT HDEL ' .. account }) end
  local n = #fields
  fields[n + 1], fields[n + 2] = 'todo', cmsgpack.pack({ steps, zeros, before })
  call('HSET', account, unpack(fields))
  for i = 1, #steps do call(unpack(steps[i])) end
  call('HDEL', account, 'todo', unpack(zeros))
end

-- The negative of a whole number, both as texts.
local function negated(s)
  if s == '0' then return s end
  if string.sub(s, 1, 1) == '-' then return string.sub(s, 2) end
  return '-' .. s
end

-- The number of a line: the first part of its id.
local function number_of(id)
  return tonumber(string.match(id, '^%d+'))
end

-- Positions of a line's values in the command that appends it (`line` in ledger.lua). XRANGE returns the line without
-- the command, its key and its id, so all positions are lower by LINE_HEAD there.
local LINE = { id = 3, kind = 7, amount = 13, bal = 15, ref = 17, group = 19, model = 21, key = 23 }
local LINE_HEAD = 3

-- Finishes what an earlier script has begun. Only a script that stopped leaves a redo record, and each script finishes
-- it first, so that its commands find the state that they found then. The exception is a script of a version without
-- redo records: it may have written lines and changed sums in between. The rest of the record then continues from
-- there.
local function finish(todo)
  local readable, begun = pcall(cmsgpack.unpack, todo)
  if not readable or type(begun) ~= 'table' or type(begun[3]) ~= 'table' then damaged(account .. ' todo') end
  -- `from`: the original position of its first line.
  local steps, zeros, before, from = unpack(begun)
  local ledger, usage
  for _, step in ipairs(steps) do
    if string.sub(step[2], 1, #account) ~= account then damaged(account .. ' todo') end
    if step[1] == 'XADD' then
      ledger, from = step[2], from or step[LINE.id]
      if step[LINE.kind] == 'usage' then usage = step end
    end
  end

  -- All lines from there on, and what other requests charged in them to the fields of our sums.
  local lines, by_id, charges, charged = {}, {}, 0, '0'
  if ledger then lines = redis.call('XRANGE', ledger, from, '+') end
  local last = lines[#lines]
  local function has_same(said, name) return said[LINE[name] - LINE_HEAD] == usage[LINE[name]] end
  for _, found in ipairs(lines) do
    local said = found[2]
    by_id[found[1]] = said
    if usage and has_same(said, 'kind') and not has_same(said, 'ref')
      and has_same(said, 'group') and has_same(said, 'model') and has_same(said, 'key') then
      charges, charged = charges + 1, plus(charged, said[LINE.amount - LINE_HEAD], account .. ' line')
    end
  end

  -- Whether a line exists exactly as it would be written.
  local function is_written(step)
    local said = by_id[step[LINE.id]]
    if not said then return false end
    for i = LINE_HEAD + 1, #step do if said[i - LINE_HEAD] ~= step[i] then return false end end
    return true
  end

  -- If sums are not set yet, our difference is added to what others have made of them. `sum`: index of the step, former
  -- values of the fields, others' charges that they already contained. Returns whether the sums are set, and whether
  -- they have changed.
  local function follow_sums(step, sum)
    local stood, names = sum[2], {}
    for i = 3, #step, 2 do names[#names + 1] = step[i] end
    local sums = step[2]
    local found = redis.call('HMGET', sums, unpack(names))
    -- The first field is the amount of the day, or the number of its requests.
    local others = charged
    if string.sub(names[1], 1, 9) == 'requests|' then others = text(charges) end
    local seen = sum[3] or '0'
    local was, stands = stood[1] or '0', found[1] or '0'
    local unset = plus(was, plus(others, negated(seen), sums), sums)
    if stands ~= was and stands ~= unset then return true, false end
    for i = 1, #names do
      local own = plus(step[2 * i + 2], negated(stood[i] or '0'), sums)
      stood[i], step[2 * i + 2] = found[i], plus(found[i], own, sums)
    end
    sum[3] = others
    return false, stands ~= was or others ~= seen
  end

  -- A line whose position was taken by others gets a new one after them, with the present balance. The settled mark
  -- names the first line.
  local seq, bal = unpack(redis.call('HMGET', account, 'seq', 'bal'))
  local moved, mark, displaced, written = false, nil, false, {}
  for _, sum in ipairs(before) do
    local is_set, has_moved = follow_sums(steps[sum[1]], sum)
    written[sum[1]], moved = is_set, moved or has_moved
  end
  for place, step in ipairs(steps) do
    if step[1] == 'SET' and string.sub(step[2], 1, #account + 3) == account .. ':d:' then mark = step end
    if step[1] == 'XADD' then
      local id = step[LINE.id]
      written[place] = is_written(step)
      if not written[place] and (displaced or (last and number_of(last[1]) >= number_of(id))) then
        local number = stored_number(seq, account .. ' seq')
        if last then number = math.max(number, number_of(last[1])) end
        seq, displaced, moved = text(number + 1), true, true
        step[LINE.id], step[LINE.bal] = seq .. '-0', bal
        local said = mark and cjson.decode(mark[3])
        if said and said[3] .. '-0' == id then mark[3] = cjson.encode({ said[1], said[2], seq }) end
      end
    end
  end
  -- The new state is stored before the steps continue from it.
  if moved then
    redis.call('HSET', account, 'seq', seq, 'todo', cmsgpack.pack({ steps, zeros, before, from }))
  end

  for place, step in ipairs(steps) do
    if not written[place] then redis.call(unpack(step)) end
  end
  local gone = { 'todo' }
  for _, name in ipairs(zeros) do
    if redis.call('HGET', account, name) == '0' then gone[#gone + 1] = name end
  end
  redis.call('HDEL', account, unpack(gone))
end
