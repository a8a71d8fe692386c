-- Holds: a hash of records and a sorted set of expiries. A record is a JSON list of texts (store/hold-record.ts).

local SWEEP_MAX = 16

local function release(account, holds, expiries, rid, record)
  if record[1] ~= '0' then
    local field = 'held'
    if record[4] ~= '' then field = 'eh:' .. record[4] end
    redis.call('HINCRBY', account, field, '-' .. record[1])
  end
  redis.call('HINCRBY', account, 'conc', '-1')
  local scope = 'c:' .. record[3]
  if redis.call('HINCRBY', account, scope, '-1') <= 0 then redis.call('HDEL', account, scope) end
  redis.call('HDEL', holds, rid)
  redis.call('ZREM', expiries, rid)
end

-- Lets expired holds go, earliest first, a bounded number of them.
local function sweep(account, holds, expiries, now)
  local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', text(now), 'LIMIT', '0', text(SWEEP_MAX))
  for _, rid in ipairs(expired) do
    local record = redis.call('HGET', holds, rid)
    if record then
      release(account, holds, expiries, rid, cjson.decode(record))
    else
      redis.call('ZREM', expiries, rid)
    end
  end
end
