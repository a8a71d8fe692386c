-- Removes one record, or all of some kinds, together with those that are over, in one command.
-- KEYS sign-ins; ARGV field, or kinds, each followed by a colon; the last instant at which the record may have been
-- stored, or ''
-- Replies the matching records that were not over.
local live, gone = list_sign_ins(clock())
local is_kind, by = string.sub(ARGV[1], -1) == ':', tonumber(ARGV[2])
local meant = {}
for _, record in ipairs(live) do
  local is_named = record.field == ARGV[1] or (is_kind and string.find(':' .. ARGV[1], ':' .. record.kind .. ':', 1, true))
  if is_named and not (by and record.kept > by) then
    meant[#meant + 1] = said(record)
    gone[#gone + 1] = record.field
  end
end
if #gone > 0 then redis.call('HDEL', sign_ins, unpack(gone)) end
return meant
