-- Rate buckets: debt in tokens x 60,000; each millisecond it drains by the per-minute limit. The same arithmetic as in
-- store/buckets.ts, line by line. A bucket is stored as '<debt>:<at>'.

local UNIT = 60000
local DEBT_MAX = 4000000000000000
-- How far ahead of the clock a bucket may be. One that is further ahead was used while the clock was wrong. It counts as
-- never used, because it would not drain until the clock is there again.
local AHEAD_MAX_MS = 3600000

local function drain(stored, limit, now)
  if not stored then return { debt = 0, at = now } end
  local debt, at = string.match(stored, '^(%d+):(%d+)$')
  if not debt then damaged(account .. ' bucket') end
  debt, at = tonumber(debt), tonumber(at)
  if at - now > AHEAD_MAX_MS then return { debt = 0, at = now } end
  local later = math.max(now, at)
  return { debt = math.max(0, debt - limit * (later - at)), at = later }
end

-- Takes tokens; a negative count gives them back. Returns the bucket to store.
local function take(bucket, count)
  bucket.debt = math.min(DEBT_MAX, math.max(0, bucket.debt + count * UNIT))
  return text(bucket.debt) .. ':' .. text(bucket.at)
end

-- Takes `cost` from an allowance, both in nano-dollars. The allowance is restored evenly over a day. Returns the bucket
-- to store (debt in nano-dollars), or nil when the cost does not fit into what is left. Nothing fits into an allowance
-- of 0.
local function take_allowed(stored, allowance, cost, now)
  local debt, at = 0, now
  if stored then
    debt, at = string.match(stored, '^(%d+):(%d+)$')
    if not debt then damaged(account .. ' allowance') end
    debt, at = tonumber(debt), tonumber(at)
    if at - now > AHEAD_MAX_MS then debt, at = 0, now end
  end
  local later = math.max(now, at)
  local left = math.max(0, debt - math.floor(allowance * (later - at) / 86400000))
  if allowance == 0 or cost > allowance - left then return nil end
  return text(left + cost) .. ':' .. text(later)
end

-- Overruns: charges above their holds with a significant part beyond funds or budgets. They are counted in
-- milliseconds, which drain by themselves: seven days each, three of them at most. Three within the time are too many.
local OVERRUN_MS = 604800000

local function is_overrun(beyond, hold)
  return beyond > math.floor(hold / 8)
end

local function add_overrun(stored, now)
  local count = drain(stored, 1, now)
  return text(math.min(3 * OVERRUN_MS, count.debt + OVERRUN_MS)) .. ':' .. text(count.at)
end

local function needs_worst_case_hold(stored, now)
  return drain(stored, 1, now).debt > 2 * OVERRUN_MS
end
