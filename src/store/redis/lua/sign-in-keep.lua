-- Stores a record, replacing one of the same kind and id, and removes those that are over.
-- KEYS sign-ins
-- ARGV field, lifetime in ms or '', JSON text, most of a kind, '1' if a further one replaces the oldest or '', 'new' if
-- none may exist except one with this very text or 'known' if one must exist or '', the text that the present one must
-- have or '', the field of another record that must exist or ''
local kind = string.match(ARGV[1], '^%a+')
local most = tonumber(ARGV[4])
local now = clock()
local live, gone = list_sign_ins(now)
local last, alike, is_known, has_other = 0, {}, false, ARGV[8] == ''
for _, record in ipairs(live) do
  if record.field == ARGV[8] then has_other = true end
  if record.field ~= ARGV[1] then
    last = math.max(last, record.place)
    if record.kind == kind then alike[#alike + 1] = record.field end
  else
    if ARGV[7] ~= '' and record.data ~= ARGV[7] then return 'unmet' end
    -- Stored by this very call, which is repeated because its answer was lost.
    if ARGV[6] == 'new' and record.data == ARGV[3] then return 'kept' end
    is_known = true
  end
end
if not has_other then return 'unmet' end
if (ARGV[6] == 'new' and is_known) or (ARGV[6] == 'known' and not is_known) then return 'unmet' end
if #alike >= most and ARGV[5] ~= '1' then return 'too_many' end
for i = 1, #alike - most + 1 do gone[#gone + 1] = alike[i] end
local over = ARGV[2] == '' and '-' or text(now + tonumber(ARGV[2]))
-- The new record is written first: if the script stops after that, the record is stored, and the next call removes the
-- surplus.
redis.call('HSET', sign_ins, ARGV[1], table.concat({ text(last + 1), text(now), over, ARGV[3] }, ' '))
-- A record that was over and is stored again must not be removed.
local removed = {}
for _, field in ipairs(gone) do if field ~= ARGV[1] then removed[#removed + 1] = field end end
if #removed > 0 then redis.call('HDEL', sign_ins, unpack(removed)) end
return 'kept'
