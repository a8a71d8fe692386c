-- How long a request must wait for a bucket, and the bucket's state for the client.

local function wait_ms(bucket, limit, count, now)
  local over = bucket.debt + math.min(count, limit) * UNIT - limit * UNIT
  if over <= 0 then return 0 end
  return math.ceil(over / limit) + (bucket.at - now)
end

-- Limit, remaining and reset of a bucket as three texts; three empty ones without a limit.
local function bucket_texts(bucket, limit, now)
  if not bucket then return '', '', '' end
  local reset = 0
  if bucket.debt > 0 then reset = math.ceil(bucket.debt / limit) + (bucket.at - now) end
  return text(limit), text(math.max(0, math.floor((limit * UNIT - bucket.debt) / UNIT))), text(reset)
end
