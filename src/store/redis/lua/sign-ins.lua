-- What grants access to the console (store/sign-ins.ts): one hash per owner, field '<kind>:<id>', value '<position>
-- <stored at> <over at, or a dash> <JSON text>'. Positions are the order in which records were stored, which is not
-- always that of the clock. embedded/sign-ins.ts does the same.

local sign_ins = KEYS[1]

local function read_sign_in(field, value)
  local place, kept, over, data = string.match(value, '^(%d+) (%d+) ([%d-]+) (.*)$')
  if not place then damaged(sign_ins .. ' ' .. field) end
  return {
    field = field,
    kind = string.match(field, '^%a+'),
    place = stored_number(place, sign_ins .. ' ' .. field),
    kept = stored_number(kept, sign_ins .. ' ' .. field),
    over = over ~= '-' and stored_number(over, sign_ins .. ' ' .. field) or nil,
    data = data,
  }
end

local function is_over(record, now)
  return record.over and record.over <= now
end

-- Records that are not over, in the order in which they were stored, and the fields of those that are over.
local function list_sign_ins(now)
  local all, live, over = redis.call('HGETALL', sign_ins), {}, {}
  for i = 1, #all, 2 do
    local record = read_sign_in(all[i], all[i + 1])
    if is_over(record, now) then over[#over + 1] = record.field else live[#live + 1] = record end
  end
  table.sort(live, function(a, b) return a.place < b.place end)
  return live, over
end

-- A record as scripts reply it: field, when it was stored, when it is over or '', and its text.
local function said(record)
  return { record.field, text(record.kept), record.over and text(record.over) or '', record.data }
end
