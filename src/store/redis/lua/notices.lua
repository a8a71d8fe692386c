-- Notices (store/notices.ts) wait in the hash that the script changes. 'nseq' is the last queue position that was
-- assigned, 'ntaken' the last that was removed. 'n:<position % NOTICES_MAX>' is a JSON list of texts: position, time,
-- kind, ref, then the facts, names and values alternating. When all slots are full the oldest notice is overwritten, so
-- that a receiver that is down for weeks does not fill the memory. embedded/notices.ts does the same.

local outbox = KEYS[1]
local NOTICES_MAX = 256
-- The last position assigned by this script; nil: it has added no notice.
local noticed

-- Adds a notice to `fields`, names and values alternating, that one HSET of the hash will write: the first write of a
-- script, so that the notice exists exactly when its event does.
-- `ref`: the subject; `facts`: names and values alternating, all of them texts.
local function put_notice(fields, now, kind, ref, facts)
  noticed = (noticed or stored_number(redis.call('HGET', outbox, 'nseq'), outbox .. ' nseq')) + 1
  local n = #fields
  fields[n + 1] = 'n:' .. text(noticed % NOTICES_MAX)
  fields[n + 2] = cjson.encode({ text(noticed), text(now), kind, ref, unpack(facts) })
  fields[n + 3], fields[n + 4] = 'nseq', text(noticed)
end

-- Notice terms are the last argument of a script that adds notices: the threshold of balances or a dash, and the kinds
-- that the configuration asks for; '' if there is no receiver.
local function wants_notice(kind)
  local terms = ARGV[#ARGV]
  return terms ~= '' and string.find(terms .. ' ', ' ' .. kind .. ' ', 1, true) ~= nil
end

-- The same, if the configuration asks for the kind.
local function note_notice(fields, now, kind, ref, facts)
  if wants_notice(kind) then put_notice(fields, now, kind, ref, facts) end
end

-- The notice for a balance that falls from its threshold or above to below it. `by`: what caused the fall, 'request' or
-- 'adjustment'; `ref` is its id. The ids of the two kinds may look the same.
local function note_balance(fields, now, before, after, by, ref)
  if after >= before or not wants_notice('balance_low') then return end
  local own = redis.call('HGET', outbox, 'nb')
  local below = tonumber(own or '') or tonumber(string.match(ARGV[#ARGV], '^%d+') or '')
  if below and before >= below and after < below then
    put_notice(fields, now, 'balance_low', ref, { 'balance', text(after), 'below', text(below), 'by', by })
  end
end
