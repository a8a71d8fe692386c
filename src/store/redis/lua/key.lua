-- A key is a JSON list of texts: id, group, status, created, revision, name, expiry or '', '1' for a suspension, '',
-- the former values with their ends, oldest first ('hash end hash end'), the revision of its last rotation, its limits
-- and caps (store/limits/limits.ts), and the revisions of its members (key-change.lua).
-- A version without suspensions refuses a revoked key, so the stored status of a suspended key is 'revoked'. Under a
-- former value there is a list that such a version refuses in the same way; its ninth text is the end of that value.
local function is_revoked(key)
  return key[3] == 'revoked' and key[8] ~= '1'
end

-- The key of a stored text. Found by a former value, it expires when that value does.
local function key_of(account, stored)
  local key = cjson.decode(stored)
  local ends = key[9] or ''
  if ends == '' then return key end
  key = cjson.decode(redis.call('HGET', account, 'k:' .. redis.call('HGET', account, 'ki:' .. key[1])))
  if (tonumber(key[7]) or EXACT_MAX) > tonumber(ends) then key[7] = ends end
  return key
end

-- Why a key is refused in an account of that status; nil for a good one.
local function key_barred(key, now, status)
  if is_revoked(key) or status == 'closed' then return 'revoked_key' end
  if key[3] == 'revoked' or status == 'suspended' then return 'suspended' end
  local ends = tonumber(key[7] or '')
  if ends and ends <= now then return 'expired_key' end
end

-- Adds the missing texts to a record of a version with fewer of them.
local function filled(key)
  for i = 6, 13 do key[i] = key[i] or '' end
  return key
end
