-- Sums of several days in one step: as many days as cost no more time than a request; of a day with more fields, a
-- part.
-- KEYS for each day its sums and its counts; ARGV fields at most, cursor into the first day or '0', then the kinds of
-- counts
-- Replies how many days are done, the cursor into the next one, and for each day that was read its sums and its counts,
-- each a flat list of fields and figures.
local most = tonumber(ARGV[1])
local days, read, weight = #KEYS / 2, {}, 0

-- The number of fields of a day never shrinks during a read, so no page repeats a field of an earlier page.
local function part(sums, counts, cursor)
  local page = redis.call('HSCAN', sums, cursor, 'COUNT', ARGV[1])
  local counted = {}
  for i = 1, #page[2], 2 do
    local names = {}
    for kind = 3, #ARGV do names[#names + 1] = ARGV[kind] .. '|' .. page[2][i] end
    for at, figure in ipairs(redis.call('HMGET', counts, unpack(names))) do
      if figure then
        counted[#counted + 1] = names[at]
        counted[#counted + 1] = figure
      end
    end
  end
  return page[1], { page[2], counted }
end

for day = 1, days do
  local sums, counts = KEYS[2 * day - 1], KEYS[2 * day]
  local size = redis.call('HLEN', sums)
  if day == 1 and (ARGV[2] ~= '0' or size > most) then
    local cursor, page = part(sums, counts, ARGV[2])
    local done = 0
    if cursor == '0' then done = 1 end
    return { tostring(done), cursor, { page } }
  end
  weight = weight + size
  if weight > most then return { tostring(day - 1), '0', read } end
  read[day] = { redis.call('HGETALL', sums), redis.call('HGETALL', counts) }
end
return { tostring(days), '0', read }
