/**
 * Marks of settled requests do not pile up in the embedded store: settlements delete expired ones. And an admission does not
 * look for the mark of a newly generated id.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import { memoryDatabase } from "../../../src/store/embedded/database/open.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import { SETTLED_MARK_MS } from "../../../src/store/settlement.ts";
import { admitAsk, admitted, hashOf, makeAccount, ridOf, settleAsk } from "./asks.ts";

test("settlements delete expired marks and no others", async () => {
  let nowMs = 1_800_000_000_000;
  const db = memoryDatabase();
  const store = embeddedOver(new Context(db, () => nowMs));
  const tag = await makeAccount(store, "Mark");
  const settleOne = async (number: number): Promise<void> => {
    const ask = admitAsk({ tag, requestId: ridOf(number) });
    const permit = admitted(await store.admit(ask));
    const answer = await store.settle({ ...settleAsk(ask, permit, { amount: 1n }), admittedAtMs: nowMs });
    assert.equal(answer.outcome, "settled");
  };
  const marks = () => db.all("SELECT rid FROM settled ORDER BY rid").map(({ rid }) => rid);
  for (let i = 1; i <= 30; i++) await settleOne(i);
  assert.equal(marks().length, 30, "none has expired");
  nowMs += SETTLED_MARK_MS;
  for (let i = 31; i <= 60; i++) await settleOne(i);
  assert.equal(marks().length, 60, "each is valid through its last millisecond");
  nowMs += 1;
  for (let i = 61; i <= 90; i++) await settleOne(i);
  assert.deepEqual(
    marks(),
    Array.from({ length: 60 }, (_, i) => ridOf(31 + i)),
  );
  await store.close();
});

test("an admission with a fresh id does not look for its mark, any other does", async () => {
  const db = memoryDatabase();
  const store = embeddedOver(new Context(db, () => 1_800_000_000_000));
  const tag = await makeAccount(store, "Fresh");
  const ask = admitAsk({ tag, requestId: ridOf(1) });
  const permit = admitted(await store.admit({ ...ask, fresh: true }));
  assert.equal(
    (await store.settle({ ...settleAsk(ask, permit, { amount: 7n }), admittedAtMs: 1_800_000_000_000 })).outcome,
    "settled",
  );
  const again = admitted(await store.admit(ask));
  assert.equal(again.hold, permit.hold, "the first answer is repeated");
  assert.equal((await store.inspect(tag))?.holds.length, 0, "the repetition holds nothing");
  db.run("ALTER TABLE settled RENAME TO elsewhere");
  admitted(await store.admit({ ...admitAsk({ tag, requestId: ridOf(2) }), fresh: true }));
  await assert.rejects(store.admit(admitAsk({ tag, requestId: ridOf(3) })), /no such table/);
  await store.close();
});

test("the settled amount of a request is known as long as its mark exists, and for its own account only", async () => {
  let nowMs = 1_800_000_000_000;
  const store = embeddedOver(new Context(memoryDatabase(), () => nowMs));
  const [tag, other] = [await makeAccount(store, "One"), await makeAccount(store, "Two")];
  const ask = admitAsk({ tag, requestId: ridOf(1) });
  const permit = admitted(await store.admit(ask));
  const amountOf = async (of: typeof tag) => (await store.settledAmounts(of, [ridOf(1)]))[0];
  assert.equal(await amountOf(tag), undefined, "held");
  await store.settle({ ...settleAsk(ask, permit, { amount: 7n }), admittedAtMs: nowMs });
  assert.equal(await amountOf(tag), 7n);
  assert.equal(await amountOf(other), undefined);
  nowMs += SETTLED_MARK_MS;
  assert.equal(await amountOf(tag), 7n);
  nowMs += 1;
  assert.equal(await amountOf(tag), undefined);
  await store.close();
  await assert.rejects(amountOf(tag), StoreError);
});

test("expired idempotency keys are deleted by later admissions and settlements", async () => {
  let nowMs = 1_800_000_000_000;
  const keepMs = 60_000;
  const db = memoryDatabase();
  const store = embeddedOver(new Context(db, () => nowMs));
  const tag = await makeAccount(store, "Keys");
  const admitOne = async (number: number) => {
    const idempotency = { key: hashOf(`k${number}`), fingerprint: hashOf(`f${number}`) };
    const ask = admitAsk({ tag, requestId: ridOf(number), holdTtlMs: keepMs, idempotency });
    const permit = admitted(await store.admit(ask));
    const kept = { ...idempotency, streamed: false, untilMs: nowMs + keepMs };
    return () => store.settle({ ...settleAsk(ask, permit, { amount: 1n, idempotency: kept }), admittedAtMs: nowMs });
  };
  const count = () => db.all("SELECT key FROM idempotency").length;
  for (let i = 1; i <= 10; i++) await (await admitOne(i))();
  assert.equal(count(), 10);
  nowMs += keepMs + 1;
  const settle = await admitOne(11);
  assert.equal(count(), 1, "an admission deletes them");
  for (let i = 12; i <= 15; i++) await admitOne(i);
  assert.equal(count(), 5);
  nowMs += keepMs - 1;
  await settle();
  assert.equal(count(), 5, "no mark has expired yet");
  await store.close();
});
