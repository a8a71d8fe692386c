-- Changes a key. A revoked key no longer changes, so a repeated write is harmless.
-- A revision is the store's time. If a store forgot earlier changes, a new change is therefore above them when they are
-- replayed, even if the new change alters nothing. Each member has its own revision, in the 14th text
-- (store/key-revisions.ts): a replay takes effect only above that. A revocation always takes effect.
-- KEYS account
-- ARGV id, revision of a replay or '', for each member that changes ('group', 'name', 'status', 'expires', 'limits' or
-- 'caps') its name and its text, and notice terms (notices.lua)
local account = KEYS[1]
local MEMBERS = { 'group', 'name', 'status', 'expires', 'limits', 'caps' }
local hash = redis.call('HGET', account, 'ki:' .. ARGV[1])
if not hash then return false end
local stored = redis.call('HGET', account, 'k:' .. hash)
local key = filled(cjson.decode(stored))
if is_revoked(key) then return { stored, '' } end
local said, known, latest = {}, {}, 0
for i = 3, #ARGV - 1, 2 do said[ARGV[i]] = ARGV[i + 1] end
local revision, replayed = tonumber(key[5]), tonumber(ARGV[2])
for s in string.gmatch(key[14] or '', '%d+') do
  known[#known + 1] = tonumber(s)
  latest = math.max(latest, tonumber(s))
end
-- A version with one revision for the whole key may have changed it since.
local is_kept = #known == #MEMBERS and latest == revision
local was_suspended, now = key[8] == '1', clock()
local as_of = replayed or math.max(revision + 1, now)
if said.status == 'revoked' then as_of = math.max(revision + 1, as_of) end
local change, counts = {}, not replayed
for i, member in ipairs(MEMBERS) do
  if not is_kept then known[i] = revision end
  if said[member] and (said.status == 'revoked' or not replayed or replayed > known[i]) then
    change[member], known[i], counts = said[member], as_of, true
  end
  known[i] = text(known[i])
end
if not counts then return { stored, '' } end
key[2], key[6], key[7] = change.group or key[2], change.name or key[6], change.expires or key[7]
key[12], key[13] = change.limits or key[12], change.caps or key[13]
if change.status then
  key[3] = change.status == 'normal' and 'normal' or 'revoked'
  key[8] = change.status == 'suspended' and '1' or ''
end
key[5], key[14] = text(math.max(revision, as_of)), table.concat(known, ' ')
local changed = cjson.encode(key)
local fields = { 'k:' .. hash, changed }
if key[8] == '1' and not was_suspended then
  note_notice(fields, now, 'key_suspended', key[1] .. ':' .. text(as_of), { 'key', key[1], 'name', key[6], 'group', key[2] })
end
redis.call('HSET', account, unpack(fields))
return { changed, noticed and '1' or '' }
