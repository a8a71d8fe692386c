/**
 * Settlements of one turn of the loop share a commit of the embedded store. A commit that fails took none of them: memory is
 * as it was, each is told, and each can be made again (docs/failure-model.md, "What must always hold", 29).
 */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import { Database, SCHEMA_STEPS } from "../../../src/store/embedded/database.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { admitAsk, admitted, leftUnpaid, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";

const PARTS =
  "CREATE TABLE u (id INTEGER PRIMARY KEY); CREATE TABLE t (x REFERENCES u (id) DEFERRABLE INITIALLY DEFERRED)";

class House {
  readonly raw = new DatabaseSync(":memory:");
  readonly db: Database;
  readonly store: Store;
  /** What waits for the end of the turn. */
  readonly #later: (() => void)[] = [];

  constructor() {
    this.raw.exec(`${PARTS}; ${SCHEMA_STEPS.join(";")}; PRAGMA foreign_keys = ON`);
    this.db = new Database(this.raw, undefined, (work) => void this.#later.push(work));
    this.store = embeddedOver(new Context(this.db, () => 1_000_000));
  }

  /** Ends the turn. @returns the commits in it. */
  end(): number {
    const works = this.#later.splice(0);
    for (const work of works) work();
    return works.length;
  }

  /** Makes the commit of this turn fail, as a full disk does. */
  fail(): Promise<unknown> {
    const committed = this.db.commitTogether(() => this.db.run("INSERT INTO t (x) VALUES (7)"));
    return Promise.resolve(committed).catch((error: unknown) => error);
  }

  rows(): number {
    return this.raw.prepare("SELECT count(*) AS n FROM ledger WHERE kind = 'usage'").get()?.n as number;
  }
}

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
  const other = house.fail();
  house.end();
  assert.ok((await other) instanceof Error);
  for (const error of await Promise.all(failed)) assert.ok(error instanceof StoreError && error.kind === "unavailable");
  assert.deepEqual(await store.inspect(tag), before);
  assert.equal(house.rows(), 0);
  // One that is told it was done before could be lost: the mark went with the commit.
  const again = asks.map((ask) => store.settle(ask));
  house.end();
  assert.deepEqual(
    (await Promise.all(again)).map(({ outcome }) => outcome),
    ["settled", "settled"],
  );
  assert.equal(house.rows(), 1);
  assert.equal((await store.getAccount(tag))?.balance, 850n);
});

test("a repetition in the same turn is answered when the first is committed, and fails with it", async () => {
  const { store, ...house } = setUp();
  const tag = await makeAccount(store, "Carl");
  const { ask, permit } = await hold(store, tag, 1);
  const settlement = settleAsk(ask, permit, { amount: 7n });
  const both = [store.settle(settlement), store.settle(settlement)];
  const outcomes = both.map((one) => one.then(({ outcome }) => outcome).catch(() => "failed"));
  const other = house.fail();
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

test("one that cannot be written fails by itself", async () => {
  const { store, db, ...house } = setUp();
  const tag = await makeAccount(store, "Dora");
  const { ask, permit } = await hold(store, tag, 1);
  assert.throws(() => void db.commitTogether(() => db.run("INSERT INTO ledger (tag) VALUES (NULL)")));
  const answer = store.settle(settleAsk(ask, permit, { amount: 7n }));
  assert.throws(() => void db.commitTogether(() => db.run("INSERT INTO ledger (tag) VALUES (NULL)")));
  assert.equal(house.end(), 1);
  assert.equal((await answer).outcome, "settled");
  assert.equal(house.rows(), 1);
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
  const house = new House();
  return {
    store: house.store,
    db: house.db,
    end: () => house.end(),
    fail: () => house.fail(),
    rows: () => house.rows(),
  };
}
