-- How a script changes an account. A command can fail, and Redis takes nothing back, so the first write is one HSET of the
-- account: all its fields that change, and `todo`, the commands on its other keys that are still to be run. Then they run,
-- and `todo` goes. A script that stops half-way leaves the old state, or a `todo` that the next script on the account ends
-- before it believes anything (docs/decisions/a-script-that-stops-is-finished-by-the-next.md).
--
-- Each command can be run again without harm: its figures are absolute, and an XADD is not run where its line is there.

local account = KEYS[1]

-- `fields`: names and values in turn; `steps`: the commands; `zeros`: counters at zero, whose fields go with the `todo`;
-- `before`: for each step that sets sums its place, and what stood in its fields (false where there was nothing). Ends the
-- script unless everything behind the first write is allowed.
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

-- Ends what an earlier script has begun. Nothing but a script that stopped leaves a `todo`, and each script ends it first,
-- so that its commands find what they found then. The exception is a script of a version that knows of no `todo`: it may
-- have written lines and moved sums in between, and what is left of the `todo` then goes on from there.
local function finish(todo)
  local readable, begun = pcall(cmsgpack.unpack, todo)
  if not readable or type(begun) ~= 'table' or type(begun[3]) ~= 'table' then damaged(account .. ' todo') end
  local steps, zeros, before = unpack(begun)
  for _, step in ipairs(steps) do
    if string.sub(step[2], 1, #account) ~= account then damaged(account .. ' todo') end
  end

  -- Whether a line is there as it is to be written, and the last one in its place or behind it.
  local function line_of(step)
    local ledger = step[2]
    local found = redis.call('XRANGE', ledger, step[3], '+')
    local same = found[1] ~= nil and found[1][1] == step[3]
    for i = 4, #step do same = same and found[1][2][i - 3] == step[i] end
    return same, found[#found]
  end

  -- A sum that somebody has moved gets the difference.
  local function follow_sums(step, stood)
    local names, moved = {}, false
    for i = 3, #step, 2 do names[#names + 1] = step[i] end
    local sums = step[2]
    local found = redis.call('HMGET', sums, unpack(names))
    for i = 1, #names do
      local was, stands, target = stood[i], found[i], 2 * i + 2
      if stands ~= was and stands ~= step[target] then
        local negated = '0'
        if was and was ~= '0' then negated = '-' .. was end
        stood[i], step[target], moved = stands, plus(stands, plus(step[target], negated, sums), sums), true
      end
    end
    return moved
  end

  -- A line whose place others have taken gets a new one behind them, with the balance as it is by now; the settled mark
  -- names the first line.
  local seq, bal = unpack(redis.call('HMGET', account, 'seq', 'bal'))
  local moved, mark, displaced, written = false, nil, false, {}
  for _, sum in ipairs(before) do moved = follow_sums(steps[sum[1]], sum[2]) or moved end
  for place, step in ipairs(steps) do
    if step[1] == 'SET' and string.sub(step[2], 1, #account + 3) == account .. ':d:' then mark = step end
    if step[1] == 'XADD' then
      local id, last = step[3], nil
      written[place], last = line_of(step)
      if not written[place] and (displaced or last) then
        local number = stored_number(seq, account .. ' seq')
        if last then number = math.max(number, tonumber(string.match(last[1], '^%d+'))) end
        seq, displaced, moved = text(number + 1), true, true
        step[3], step[15] = seq .. '-0', bal
        local said = mark and cjson.decode(mark[3])
        if said and said[3] .. '-0' == id then mark[3] = cjson.encode({ said[1], said[2], seq }) end
      end
    end
  end
  -- From where it goes on is kept before it goes on.
  if moved then
    redis.call('HSET', account, 'seq', seq, 'todo', cmsgpack.pack({ steps, zeros, before }))
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
