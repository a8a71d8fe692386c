/**
 * An audit looks up settled marks and records of payments a page of lines at a time. Each that is missing or has another
 * amount is a finding of its own line, wherever its line is on a page, and no other is; on both stores.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { paymentsKey, settledKey } from "../../../src/store/redis/keys.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { memoOf, ridOf, settleAsk, tagOf } from "./asks.ts";
import { embeddedBench, redisBench } from "./benches.ts";

/** The audit reads 50 lines at a time. */
const LINES = 230;
const LOST_MARKS = [2, 49, 50, 51, 101, 102, 103, 229, 230];
const WRONG_MARKS = [3, 52, 100, 151];
/** These lines are payments. */
const LOST_PAYMENTS = [70, 140];
const WRONG_PAYMENTS = [90, 210];

const isPayment = (line: number) => line % 10 === 0 && !LOST_MARKS.includes(line) && !WRONG_MARKS.includes(line);
const paymentId = (line: number) => `payment "${line}"`;

/** An account whose lines are charges of 5 and payments of 1,000. */
async function fill(store: Store, name: string, nowMs: number): Promise<AccountTag> {
  const tag = tagOf(name);
  await store.createAccount({ tag, name, plan: "free" });
  const permit = { storeTimeMs: nowMs, group: "big", keyId: "key_1", entitlement: undefined };
  const tokens = { input: 4, cachedInput: 0, cacheWrite: 0, output: 1, reasoning: 0 };
  await store.credit(tag, { id: "first", amount: 1_000n, kind: "topup", note: "" });
  for (let line = 2; line <= LINES; line++) {
    if (isPayment(line)) await store.credit(tag, { id: paymentId(line), amount: 1_000n, kind: "topup", note: "" });
    else {
      const charge = { amount: 5n, memo: memoOf(4, 1), tokens };
      await store.settle(settleAsk({ tag, requestId: ridOf(line), groups: [] }, permit, charge));
    }
  }
  return tag;
}

async function findings(store: Store, tag: AccountTag): Promise<string[]> {
  const steps = auditAccount(store, { name: tag, tag });
  for (;;) {
    const step = await steps.next();
    if (step.done) return step.value.findings.map(({ check, line, about }) => `${check} ${line} ${about}`).sort();
  }
}

const EXPECTED = [
  ...[...LOST_MARKS, ...WRONG_MARKS].map((line) => `settled_mark ${line} ${ridOf(line)}`),
  ...[...LOST_PAYMENTS, ...WRONG_PAYMENTS].map((line) => `payment ${line} ${paymentId(line)}`),
  "payment_count undefined undefined",
].sort();

interface Damage {
  dropMark(tag: AccountTag, line: number): unknown;
  changeMark(tag: AccountTag, line: number): unknown;
  dropPayment(tag: AccountTag, line: number): unknown;
  changePayment(tag: AccountTag, line: number): unknown;
}

async function audits(store: Store, nowMs: number, damage: Damage): Promise<void> {
  // Its marks have the same request ids, and its payments the same ids.
  const other = await fill(store, "Whole00001", nowMs);
  const tag = await fill(store, "Broken0001", nowMs);
  assert.deepEqual(await findings(store, tag), []);
  for (const line of LOST_MARKS) await damage.dropMark(tag, line);
  for (const line of WRONG_MARKS) await damage.changeMark(tag, line);
  for (const line of LOST_PAYMENTS) await damage.dropPayment(tag, line);
  for (const line of WRONG_PAYMENTS) await damage.changePayment(tag, line);
  assert.deepEqual(await findings(store, tag), EXPECTED);
  assert.deepEqual(await findings(store, other), []);
}

test("in the embedded store each broken mark and payment record is found", async (t) => {
  const bench = await embeddedBench();
  t.after(() => bench.close());
  const run = (sql: string, ...values: string[]) => {
    const db = new DatabaseSync(join(bench.dir, "tollgate.db"));
    db.prepare(sql).run(...values);
    db.close();
  };
  await audits(bench.store, bench.nowMs(), {
    dropMark: (tag, line) => run("DELETE FROM settled WHERE tag = ? AND rid = ?", tag, ridOf(line)),
    changeMark: (tag, line) => run("UPDATE settled SET amount = 6 WHERE tag = ? AND rid = ?", tag, ridOf(line)),
    dropPayment: (tag, line) => run("DELETE FROM payments WHERE tag = ? AND id = ?", tag, paymentId(line)),
    changePayment: (tag, line) => run("UPDATE payments SET amount = 7 WHERE tag = ? AND id = ?", tag, paymentId(line)),
  });
});

test("on Redis each broken mark and payment record is found", async (t) => {
  const bench = await redisBench();
  t.after(() => bench.close());
  const { redis } = bench;
  await audits(bench.store, bench.nowMs(), {
    dropMark: (tag, line) => redis.command("DEL", settledKey(tag, ridOf(line))),
    changeMark: (tag, line) => redis.command("SET", settledKey(tag, ridOf(line)), '["6",""]'),
    dropPayment: (tag, line) => redis.command("HDEL", paymentsKey(tag), paymentId(line)),
    changePayment: (tag, line) => redis.command("HSET", paymentsKey(tag), paymentId(line), "7"),
  });
});
