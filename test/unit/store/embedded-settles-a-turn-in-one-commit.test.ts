/**
 * Settlements of one turn of the event loop share a commit of the embedded store. When a commit fails, none of them counts: the
 * memory is unchanged, each caller gets the error, and each settlement can be repeated (docs/failure-model.md invariant 29).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { admitAsk, admitted, leftUnpaid, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import { GatheringBench } from "./gathering.ts";

async function hold(store: Store, tag: AccountTag, number: number) {
  const ask = admitAsk({ tag, requestId: ridOf(number), inputTokens: 40, groups: [terms({ tokensPerMinute: 1_000 })] });
  return { ask, permit: admitted(await store.admit(ask)) };
}

test("the settlements of one turn are committed once and visible immediately", async () => {
  const { store, ...batches } = setUp();
  const tag = await makeAccount(store, "Anna");
  const held = await Promise.all([1, 2, 3].map((n) => hold(store, tag, n)));
  const answers = held.map(({ ask, permit }) => store.settle(settleAsk(ask, permit, { amount: 7n })));
  // Before the commit: no hold is left, and the charges are deducted.
  const between = await store.getAccount(tag);
  assert.deepEqual([between?.balance, between?.held], [979n, 0n]);
  let answered = 0;
  for (const answer of answers) void answer.then(() => answered++);
  await Promise.resolve();
  assert.equal(answered, 0, "nothing is answered before it is committed");
  assert.equal(batches.end(), 1);
  const outcomes = await Promise.all(answers);
  assert.deepEqual(
    outcomes.map((one) => one.outcome === "settled" && one.balance),
    [993n, 986n, 979n],
  );
});

test("a failed commit leaves everything unchanged, and all settlements can be repeated", async () => {
  const { store, ...batches } = setUp();
  const tag = await makeAccount(store, "Bert");
  const held = await Promise.all([1, 2].map((n) => hold(store, tag, n)));
  const before = await store.inspect(tag);
  const asks = held.map(({ ask, permit }, i) =>
    // The second is above its hold, and the first is a disconnect: both change what memory knows of the account.
    i === 0
      ? settleAsk(ask, permit, {
          voided: true,
          absorbed: 40n,
          leftUnpaid: leftUnpaid(500n, 90n),
          absorbedCause: "client_gone",
          upstream: "east",
        })
      : settleAsk(ask, permit, { amount: 150n, tokensTaken: 40, tokensUsed: 400 }),
  );
  const failed = asks.map((ask) => store.settle(ask).catch((error: unknown) => error));
  const other = batches.failCommit();
  batches.end();
  assert.ok((await other) instanceof Error);
  for (const error of await Promise.all(failed)) assert.ok(error instanceof StoreError && error.kind === "unavailable");
  assert.deepEqual(await store.inspect(tag), before);
  assert.equal(batches.lines(), 0);
  // If one were reported as a duplicate it could be lost, since its mark was lost with the commit.
  const again = asks.map((ask) => store.settle(ask));
  batches.end();
  assert.deepEqual(
    (await Promise.all(again)).map(({ outcome }) => outcome),
    ["settled", "settled"],
  );
  assert.equal(batches.lines(), 1);
  assert.equal((await store.getAccount(tag))?.balance, 850n);
});

test("a repetition in the same turn is answered when the first is committed, and fails with it", async () => {
  const { store, ...batches } = setUp();
  const tag = await makeAccount(store, "Carl");
  const { ask, permit } = await hold(store, tag, 1);
  const settlement = settleAsk(ask, permit, { amount: 7n });
  const both = [store.settle(settlement), store.settle(settlement)];
  const outcomes = both.map((one) => one.then(({ outcome }) => outcome).catch(() => "failed"));
  const other = batches.failCommit();
  batches.end();
  await other;
  assert.deepEqual(await Promise.all(outcomes), ["failed", "failed"]);
  const again = [store.settle(settlement), store.settle(settlement)];
  batches.end();
  assert.deepEqual(
    (await Promise.all(again)).map(({ outcome }) => outcome),
    ["settled", "duplicate"],
  );
});

test("a settlement that cannot be written fails alone when all of its batch are repeated", async () => {
  const { store, ...batches } = setUp();
  const tag = await makeAccount(store, "Dora");
  const held = await Promise.all([1, 2].map((n) => hold(store, tag, n)));
  const settlements = held.map(({ ask, permit }) => settleAsk(ask, permit, { amount: 7n }));
  const tried = () => settlements.map((one) => store.settle(one).then(({ outcome }) => outcome, String));
  const before = await store.inspect(tag);
  const [bad, good] = [batches.failWrites(), tried()];
  batches.end();
  assert.match(String(await bad), /NOT NULL/);
  for (const outcome of await Promise.all(good)) assert.match(outcome, /NOT NULL/);
  assert.deepEqual(await store.inspect(tag), before);
  // It is unknown which of them failed, so each is committed by itself now; its answer comes after its commit.
  const again = [...tried(), batches.failWrites().then(String)];
  assert.deepEqual((await Promise.all(again)).slice(0, 2), ["settled", "settled"]);
  assert.match((await again[2]) as string, /NOT NULL/);
  assert.equal(batches.lines(), 2);
  // Then they share a commit again.
  const { ask, permit } = await hold(store, tag, 3);
  const third = store.settle(settleAsk(ask, permit, { amount: 7n }));
  assert.equal(batches.lines(), 2);
  batches.end();
  assert.equal((await third).outcome, "settled");
  assert.equal((await store.getAccount(tag))?.balance, 979n);
});

test("a defect in the middle of a change rolls the batch back, as its content is unknown", async () => {
  const { store, db, ...batches } = setUp();
  const tag = await makeAccount(store, "Doris");
  const { ask, permit } = await hold(store, tag, 1);
  const before = await store.inspect(tag);
  const settlement = settleAsk(ask, permit, { amount: 7n });
  const first = store.settle(settlement).catch(String);
  const broken = db.commitTogether(() => {
    db.batch.setAccount(tag, { balance: 1n, spent: 0n, seq: 9 });
    throw new Error("a defect");
  });
  await assert.rejects(async () => broken, /a defect/);
  assert.match(String(await first), /a defect/);
  assert.deepEqual(await store.inspect(tag), before);
  const second = store.settle(settlement);
  batches.end();
  assert.equal((await second).outcome, "settled");
});

test("an administrative write and closing the store commit the waiting settlements", async () => {
  const { store, ...batches } = setUp();
  const tag = await makeAccount(store, "Emil");
  const [first, second] = [await hold(store, tag, 1), await hold(store, tag, 2)];
  const one = store.settle(settleAsk(first.ask, first.permit, { amount: 7n }));
  await store.credit(tag, { id: "second", amount: 100n, kind: "topup", note: "" });
  assert.equal((await one).outcome, "settled");
  const two = store.settle(settleAsk(second.ask, second.permit, { amount: 7n }));
  await store.close();
  assert.equal((await two).outcome, "settled");
  assert.doesNotThrow(() => batches.end());
});

test("an administrative change applies to the next request", async () => {
  const { store, ...batches } = setUp();
  const tag = await makeAccount(store, "Fine");
  await hold(store, tag, 1);
  await store.credit(tag, { id: "second", amount: 500n, kind: "topup", note: "" });
  assert.equal((await store.readKey(tag, admitAsk({ tag, requestId: ridOf(9) }).keyHash))?.account.balance, 1_500n);
  await store.revokeKey(tag, "key_Fine");
  const answer = await store.admit(admitAsk({ tag, requestId: ridOf(2) }));
  assert.deepEqual([answer.outcome, answer.outcome === "refused" && answer.cause], ["refused", "revoked_key"]);
  batches.end();
});

function setUp() {
  const bench = new GatheringBench();
  return { ...bench, store: bench.store };
}
