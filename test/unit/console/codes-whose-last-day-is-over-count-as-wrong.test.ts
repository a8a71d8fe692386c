/** A code that can no longer be redeemed is a wrong one, and many of them are looked up no more. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { newCode } from "../../../src/values/code.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { startConsole } from "./running-console.ts";
import { openStandingStore } from "./test-store.ts";

const FAILURES_PER_MINUTE = 5;
const DAY = { card: "day", plan: "pro", group: "cards", lastsMs: 86_400_000, starts: "at_redemption" } as const;

test("after five codes whose last day is over, a good one is not looked up", async (t) => {
  const nowMs = Date.now();
  const store = await openStandingStore(t, nowMs);
  const outcomes: string[] = [];
  const { ask } = await startConsole(t, { store, onCodeFailure: ({ outcome }) => void outcomes.push(outcome) });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const worth = { ...DAY, quota: nanoUsd(5n), batch: undefined };
  const over = Array.from({ length: FAILURES_PER_MINUTE }, () => newCode(nowMs, randomBytes));
  const good = newCode(nowMs, randomBytes);
  await store.createCodes({ ...worth, expiresAtMs: nowMs }, over, undefined);
  await store.createCodes({ ...worth, expiresAtMs: nowMs + 1 }, [good], undefined);
  const redeem = (code: string) => ask("POST", "/admin/v1/accounts/alice/redemptions", { code });
  for (const { text } of over) assert.equal((await redeem(text)).status, 410);
  const blocked = await redeem(good.text);
  assert.deepEqual([blocked.status, blocked.json.error.code], [429, "too_many_wrong_codes"]);
  assert.deepEqual(outcomes, [...over.map(() => "failed"), "blocked"]);
});
