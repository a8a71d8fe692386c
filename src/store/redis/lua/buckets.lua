-- Rate buckets: debt in tokens x 60,000, which drains by the per-minute limit each millisecond. The same arithmetic as
-- store/buckets.ts, line by line. A bucket is stored as '<debt>:<at>'.

local UNIT = 60000
local DEBT_MAX = 4000000000000000

local function drain(account, field, limit, now)
  local stored = redis.call('HGET', account, field)
  if not stored then return { debt = 0, at = now } end
  local debt, at = string.match(stored, '^(%d+):(%d+)$')
  debt, at = tonumber(debt), tonumber(at)
  local later = math.max(now, at)
  return { debt = math.max(0, debt - limit * (later - at)), at = later }
end

local function wait_ms(bucket, limit, count, now)
  local over = bucket.debt + math.min(count, limit) * UNIT - limit * UNIT
  if over <= 0 then return 0 end
  return math.ceil(over / limit) + (bucket.at - now)
end

-- Takes (or with a negative count gives back) tokens and stores the bucket.
local function take(account, field, bucket, count)
  bucket.debt = math.min(DEBT_MAX, math.max(0, bucket.debt + count * UNIT))
  redis.call('HSET', account, field, text(bucket.debt) .. ':' .. text(bucket.at))
end

-- Limit, remaining and reset of a bucket as three texts; three empty ones without a limit.
local function bucket_texts(bucket, limit, now)
  if not bucket then return '', '', '' end
  local reset = 0
  if bucket.debt > 0 then reset = math.ceil(bucket.debt / limit) + (bucket.at - now) end
  return text(limit), text(math.max(0, math.floor((limit * UNIT - bucket.debt) / UNIT))), text(reset)
end
