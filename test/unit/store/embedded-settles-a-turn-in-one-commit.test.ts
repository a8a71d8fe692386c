/**
 * Settlements of one turn of the loop share a commit of the embedded store. A commit that fails took none of them: memory is
 * as it was, each is told, and each can be made again (docs/failure-model.md, "What must always hold", 29).
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

test("what is settled in one turn is committed once, and seen at once", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Anna");
  const held = await Promise.all([1, 2, 3].map((n) => hold(store, tag, n)));
  const answers = held.map(({ ask, permit }) => store.settle(settleAsk(ask, permit, { amount: 7n })));
  // Before the commit: no hold is left, and the charges are taken.
  const between = await store.getAccount(tag);
  assert.deepEqual([between?.balance, between?.held], [979n, 0n]);
  let answered = 0;
  for (const answer of answers) void answer.then(() => answered++);
  await Promise.resolve();
  assert.equal(answered, 0, "nothing is answered before it is committed");
  assert.equal(house.end(), 1);
  const outcomes = await Promise.all(answers);
  assert.deepEqual(
    outcomes.map((one) => one.outcome === "settled" && one.balance),
    [993n, 986n, 979n],
  );
});

test("a commit that fails leaves everything as it was, and all can be settled again", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Bert");
  const held = await Promise.all([1, 2].map((n) => hold(store, tag, n)));
  const before = await store.inspect(tag);
  const asks = held.map(({ ask, permit }, i) =>
    // The second is above its hold, and the first has left: both change what memory knows of the account.
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
  const other = house.failCommit();
  house.end();
  assert.ok((await other) instanceof Error);
  for (const error of await Promise.all(failed)) assert.ok(error instanceof StoreError && error.kind === "unavailable");
  assert.deepEqual(await store.inspect(tag), before);
  assert.equal(house.lines(), 0);
  // One that is told it was done before could be lost: the mark went with the commit.
  const again = asks.map((ask) => store.settle(ask));
  house.end();
  assert.deepEqual(
    (await Promise.all(again)).map(({ outcome }) => outcome),
    ["settled", "settled"],
  );
  assert.equal(house.lines(), 1);
  assert.equal((await store.getAccount(tag))?.balance, 850n);
});

test("a repetition in the same turn is answered when the first is committed, and fails with it", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Carl");
  const { ask, permit } = await hold(store, tag, 1);
  const settlement = settleAsk(ask, permit, { amount: 7n });
  const both = [store.settle(settlement), store.settle(settlement)];
  const outcomes = both.map((one) => one.then(({ outcome }) => outcome).catch(() => "failed"));
  const other = house.failCommit();
  house.end();
  await other;
  assert.deepEqual(await Promise.all(outcomes), ["failed", "failed"]);
  const again = [store.settle(settlement), store.settle(settlement)];
  house.end();
  assert.deepEqual(
    (await Promise.all(again)).map(({ outcome }) => outcome),
    ["settled", "duplicate"],
  );
});

test("one that cannot be written fails alone when all are tried again", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Dora");
  const held = await Promise.all([1, 2].map((n) => hold(store, tag, n)));
  const settlements = held.map(({ ask, permit }) => settleAsk(ask, permit, { amount: 7n }));
  const tried = () => settlements.map((one) => store.settle(one).then(({ outcome }) => outcome, String));
  const before = await store.inspect(tag);
  const [bad, good] = [house.failWrites(), tried()];
  house.end();
  assert.match(String(await bad), /NOT NULL/);
  for (const outcome of await Promise.all(good)) assert.match(outcome, /NOT NULL/);
  assert.deepEqual(await store.inspect(tag), before);
  // Nobody knows which of them was at fault, so that each is on its own now; its answer is one of a commit.
  const again = [...tried(), house.failWrites().then(String)];
  assert.deepEqual((await Promise.all(again)).slice(0, 2), ["settled", "settled"]);
  assert.match((await again[2]) as string, /NOT NULL/);
  assert.equal(house.lines(), 2);
  // Then they share a commit again.
  const { ask, permit } = await hold(store, tag, 3);
  const third = store.settle(settleAsk(ask, permit, { amount: 7n }));
  assert.equal(house.lines(), 2);
  house.end();
  assert.equal((await third).outcome, "settled");
  assert.equal((await store.getAccount(tag))?.balance, 979n);
});

test("a defect in the middle of a change takes back the batch, of which nobody knows what is in it", async () => {
  const { store, db, ...house } = setUp();
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
  house.end();
  assert.equal((await second).outcome, "settled");
});

test("a write that a person asked for, and the end, commit what waits", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Emil");
  const [first, second] = [await hold(store, tag, 1), await hold(store, tag, 2)];
  const one = store.settle(settleAsk(first.ask, first.permit, { amount: 7n }));
  await store.credit(tag, { id: "second", amount: 100n, kind: "topup", note: "" });
  assert.equal((await one).outcome, "settled");
  const two = store.settle(settleAsk(second.ask, second.permit, { amount: 7n }));
  await store.close();
  assert.equal((await two).outcome, "settled");
  assert.doesNotThrow(() => house.end());
});

test("what people change counts from the next request on", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Fine");
  await hold(store, tag, 1);
  await store.credit(tag, { id: "second", amount: 500n, kind: "topup", note: "" });
  assert.equal((await store.readKey(tag, admitAsk({ tag, requestId: ridOf(9) }).keyHash))?.account.balance, 1_500n);
  await store.revokeKey(tag, "key_Fine");
  const answer = await store.admit(admitAsk({ tag, requestId: ridOf(2) }));
  assert.deepEqual([answer.outcome, answer.outcome === "refused" && answer.cause], ["refused", "revoked_key"]);
  house.end();
});

function setUp() {
  const bench = new GatheringBench();
  return { ...bench, store: bench.store };
}
