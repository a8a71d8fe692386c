-- A key is a JSON list of texts: id, group, status, created, revision, name, end or '', '1' for a suspension. A version that knew
-- of no suspension refuses a revoked key, so that is what a suspended key has for a status.
local function is_revoked(key)
  return key[3] == 'revoked' and key[8] ~= '1'
end

-- Why a key is refused; nil for a good one.
local function key_barred(key, now)
  if key[3] == 'revoked' then return is_revoked(key) and 'revoked_key' or 'suspended' end
  local ends = tonumber(key[7] or '')
  if ends and ends <= now then return 'expired_key' end
end
