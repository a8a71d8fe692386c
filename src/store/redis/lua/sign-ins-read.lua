-- One record, or all, in the order in which they were stored, without those that are over.
-- KEYS sign-ins; ARGV field or ''
local now = clock()
if ARGV[1] ~= '' then
  local value = redis.call('HGET', sign_ins, ARGV[1])
  local record = value and read_sign_in(ARGV[1], value)
  if not record or is_over(record, now) then return {} end
  return { said(record) }
end
local live, found = list_sign_ins(now), {}
for _, record in ipairs(live) do found[#found + 1] = said(record) end
return found
