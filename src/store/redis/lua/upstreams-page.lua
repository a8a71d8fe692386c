-- Sums by upstream of several days in one step: as many days as cost no more time than a request; of a day with more
-- fields, a part. An upstream's figures may then be on several pages.
-- KEYS for each day its counts; ARGV fields at most, cursor into the first day or '0'
-- Replies how many days are done, the cursor into the next one, and for each day that was read a flat list of the
-- fields of upstreams and their figures.
local most = tonumber(ARGV[1])
local weight, read = 0, {}

local function is_upstream(field)
  return string.sub(field, 1, 1) == '^'
end

for day = 1, #KEYS do
  local counts = KEYS[day]
  local size = redis.call('HLEN', counts)
  if day == 1 and (ARGV[2] ~= '0' or size > most) then
    -- The number of fields of a day never shrinks during a read, so no page repeats a field of an earlier page.
    local page = redis.call('HSCAN', counts, ARGV[2], 'MATCH', '^*', 'COUNT', ARGV[1])
    local done = 0
    if page[1] == '0' then done = 1 end
    return { tostring(done), page[1], { page[2] } }
  end
  weight = weight + size
  if weight > most then return { tostring(day - 1), '0', read } end
  local all, kept = redis.call('HGETALL', counts), {}
  for i = 1, #all, 2 do
    if is_upstream(all[i]) then
      kept[#kept + 1] = all[i]
      kept[#kept + 1] = all[i + 1]
    end
  end
  read[day] = kept
end
return { tostring(#KEYS), '0', read }
