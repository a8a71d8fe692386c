-- Holds: a hash of records and a sorted set of expiries. A record is a JSON list of texts (store/hold-record.ts).

local SWEEP_MAX = '16'

local function expired_holds(expiries, now)
  return redis.call('ZRANGEBYSCORE', expiries, '-inf', text(now), 'LIMIT', '0', SWEEP_MAX)
end

-- A hold's record and its amount.
local function hold_of(rid, stored)
  local record = cjson.decode(stored)
  local held = amount(record[1])
  if not held then damaged('the hold of ' .. rid) end
  return record, held
end
