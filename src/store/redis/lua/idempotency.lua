-- Idempotency keys: which request took one, and how that ended. Each is a JSON list of texts: request id, fingerprint,
-- state (running, streamed, finished), end. embedded/idempotency.ts does the same, line by line.

-- The contents of a key, or nil when it has ended.
local function key_mark(idem, now)
  local stored = redis.call('GET', idem)
  if not stored then return nil end
  local mark = cjson.decode(stored)
  if not (now < tonumber(mark[4])) then return nil end
  return mark
end

-- Why a request with this fingerprint may not have the key; nil when it may.
local function key_refusal(mark, fingerprint)
  if not mark then return nil end
  if mark[2] ~= fingerprint then return 'idempotency_key' end
  if mark[3] == 'running' then return 'idempotency_in_progress' end
  return 'idempotency_' .. mark[3]
end

-- The command that stores a mark. Redis keeps a key through its last millisecond; a mark ends at the beginning of that
-- millisecond.
local function put_mark(idem, rid, fingerprint, state, till)
  return { 'SET', idem, cjson.encode({ rid, fingerprint, state, text(till) }), 'PXAT', text(till - 1) }
end

-- The command for what a settlement leaves of its request's key: the memory of a charge, or nothing if nothing was
-- charged. If another request has taken the key meanwhile, the key stays with that one: nil.
local function end_key(idem, rid, fingerprint, state, till, now)
  local mark = key_mark(idem, now)
  if mark and mark[1] ~= rid then return nil end
  if state == 'voided' or not (now < till) then return { 'DEL', idem } end
  return put_mark(idem, rid, fingerprint, state, till)
end
