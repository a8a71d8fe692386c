-- Notices (store/notices.ts) wait in the hash that the script changes: 'nseq' the last place that was given, 'ntaken' the last
-- that was taken, 'n:<place % NOTICES_MAX>' a JSON list of texts: place, time, kind, ref, and facts in turn with their names.
-- When all places are full the oldest notice is written over, so that a receiver which is down for weeks fills nothing.
-- embedded/notices.ts does the same.

local outbox = KEYS[1]
local NOTICES_MAX = 256
-- The last place given by this script; nil: it has noted nothing.
local noticed

-- Adds a notice to `fields`, names and values in turn that one HSET of the hash will write: with the first write of a script,
-- so that it is there exactly when what it tells of is.
-- `ref`: what it tells of; `facts`: names and values in turn, all of them texts.
local function put_notice(fields, now, kind, ref, facts)
  noticed = (noticed or stored_number(redis.call('HGET', outbox, 'nseq'), outbox .. ' nseq')) + 1
  local n = #fields
  fields[n + 1] = 'n:' .. text(noticed % NOTICES_MAX)
  fields[n + 2] = cjson.encode({ text(noticed), text(now), kind, ref, unpack(facts) })
  fields[n + 3], fields[n + 4] = 'nseq', text(noticed)
end

-- What the configuration wants to be told of is the last argument of a script that notes anything: the threshold of balances
-- or a dash, and the kinds; '' where there is no receiver.
local function wants_notice(kind)
  local terms = ARGV[#ARGV]
  return terms ~= '' and string.find(terms .. ' ', ' ' .. kind .. ' ', 1, true) ~= nil
end

-- The same where the configuration wants to be told of such a thing.
local function note_notice(fields, now, kind, ref, facts)
  if wants_notice(kind) then put_notice(fields, now, kind, ref, facts) end
end

-- A balance that goes from its threshold or above to below it. `by`: what takes it there, 'request' or 'adjustment', whose id `ref` is:
-- the two may look the same.
local function note_balance(fields, now, before, after, by, ref)
  if after >= before or not wants_notice('balance_low') then return end
  local own = redis.call('HGET', outbox, 'nb')
  local below = tonumber(own or '') or tonumber(string.match(ARGV[#ARGV], '^%d+') or '')
  if below and before >= below and after < below then
    put_notice(fields, now, 'balance_low', ref, { 'balance', text(after), 'below', text(below), 'by', by })
  end
end
