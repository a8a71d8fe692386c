/** Limits of the embedded store as they can be read. */
import type { AccountTag } from "../../values/key.ts";
import type { LimitUsage } from "../buckets.ts";
import { holdExpiresAtMs, holdScope } from "../hold-record.ts";
import { OVERRUN_BUCKET, requestBucket, tokenBucket } from "../names.ts";
import { SWEEP_MAX } from "../settlement.ts";
import type { Context } from "./context.ts";
import { findAccountRow } from "./rows.ts";

/** As the next admission would find them, once it has let expired holds go. */
export function readLimits(context: Context, tag: AccountTag, scope: string): LimitUsage | undefined {
  if (findAccountRow(context.db, tag) === undefined) return undefined;
  const nowMs = context.nowMs();
  const live = context.live(tag);
  const expired = [...live.holds]
    .map(([requestId, record]) => ({ requestId, scope: holdScope(record), atMs: holdExpiresAtMs(record) }))
    .filter(({ atMs }) => atMs <= nowMs)
    .sort((a, b) => a.atMs - b.atMs || (a.requestId < b.requestId ? -1 : 1))
    .slice(0, SWEEP_MAX);
  const ofScope = expired.filter((hold) => hold.scope === scope);
  return {
    requests: live.buckets.get(requestBucket(scope)),
    tokens: live.buckets.get(tokenBucket(scope)),
    overrun: live.buckets.get(OVERRUN_BUCKET),
    inFlight: (live.inFlightByScope.get(scope) ?? 0) - ofScope.length,
    inFlightOfAccount: live.holds.size - expired.length,
    storeTimeMs: nowMs,
  };
}
