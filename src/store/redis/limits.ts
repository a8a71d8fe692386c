/** Limits on Redis as they can be read. */
import type { AccountTag } from "../../values/key.ts";
import type { Bucket, LimitUsage } from "../buckets.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, expiriesKey, holdsKey } from "./keys.ts";
import type { Scripts } from "./scripts.ts";

export async function readLimits(
  runner: Runner,
  scripts: Scripts,
  tag: AccountTag,
  scope: string,
): Promise<LimitUsage | undefined> {
  const keys = [accountKey(tag), holdsKey(tag), expiriesKey(tag)];
  const reply = await runner.script(scripts["limits-read"], keys, [scope]);
  if (reply === null) return undefined;
  const [now = "", requests = "", tokens = "", ofScope, ofAccount, overrun = ""] = reply as readonly string[];
  return {
    requests: toBucket(requests),
    tokens: toBucket(tokens),
    overrun: toBucket(overrun),
    inFlight: Number(ofScope),
    inFlightOfAccount: Number(ofAccount),
    storeTimeMs: Number(now),
  };
}

/** A bucket is stored as `<debt>:<at>` (lua/buckets.lua). */
function toBucket(stored: string): Bucket | undefined {
  const [debt, at] = stored.split(":");
  return at === undefined ? undefined : { debt: Number(debt), atMs: Number(at) };
}
