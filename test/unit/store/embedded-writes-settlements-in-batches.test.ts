/**
 * The embedded store gathers settlements and writes them in batches. A read in the middle of a batch sees all of it, a batch
 * that cannot be written leaves nothing behind, and the sums are those of the ledger however settlements were gathered.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import fc from "fast-check";
import { Context } from "../../../src/store/embedded/context.ts";
import { memoryDatabase } from "../../../src/store/embedded/database/open.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import { limitsText } from "../../../src/store/limits/limits.ts";
import type { AccountState } from "../../../src/store/records.ts";
import { SETTLED_MARK_MS } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { utcDay } from "../../../src/values/time.ts";
import { admitAsk, admitted, cardTerms, DAY_MS, hashOf, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import { embeddedBench, NOTICES } from "./benches.ts";
import type { Bench } from "./contract.ts";
import { assertIdentities } from "./contract-settle.ts";
import { Run } from "./differential.ts";
import { GatheringBench } from "./gathering.ts";
import { anyOperation } from "./operations.ts";

const RUNS = Number(process.env.GATHERING_RUNS ?? 150);
const STEPS_MAX = 60;
/** The largest number of settlements in a batch. */
const GATHER_MAX = 256;

/** Writes each settlement immediately. */
function atOnceBench(): Bench {
  let nowMs = 0;
  const store = embeddedOver(new Context(memoryDatabase(), () => nowMs, NOTICES));
  const setTime = (epochMs: number) => {
    nowMs = epochMs;
  };
  return { store, nowMs: () => nowMs, setTime, close: () => store.close() };
}

/** Asserts that the sums of a day equal its charges, whatever paid them. */
function assertDays(state: AccountState): void {
  const charged = state.ledger.filter(({ kind }) => kind === "usage").map(({ amount }) => amount);
  const summed = Object.values(state.days).flatMap((day) => Object.values(day));
  const total = (amounts: readonly bigint[]) => amounts.reduce((sum, amount) => sum + amount, 0n);
  assert.equal(total(summed), total(charged), "the sums of the days");
}

test("a store that gathers gives the same answers as one that writes immediately, whenever it is read", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyOperation, { minLength: 20, maxLength: STEPS_MAX, size: "max" }),
      fc.integer({ min: 1, max: STEPS_MAX }),
      fc.integer({ min: 2, max: STEPS_MAX }),
      async (operations, endsAfter, looksAfter) => {
        const gathering = new GatheringBench();
        const benches = [atOnceBench(), gathering];
        const run = new Run(1, benches, { goesOn: true });
        await run.begin();
        for (const [at, operation] of operations.entries()) {
          await run.step(operation);
          if (at % endsAfter === endsAfter - 1) gathering.end();
          if (at % looksAfter === looksAfter - 1) await run.look();
        }
        // Compares once in the middle of the last batch, and once after it.
        await run.look();
        gathering.end();
        await run.answered();
        await run.look();
        for (const bench of benches) await bench.close();
      },
    ),
    { numRuns: RUNS },
  );
});

/** An account with every kind of row that a settlement changes, and requests with holds. */
async function furnished(bench: GatheringBench, name: string) {
  const { store } = bench;
  bench.setTime(Date.UTC(2026, 4, 31, 12));
  const tag = await makeAccount(store, name);
  await store.createKey(tag, { id: "key_cards", hash: hashOf("cards"), group: "cards" });
  await store.changeKey(tag, `key_${name}`, { limits: limitsText({ budgets: { day: nanoUsd(900n) } }) });
  const worth = { id: "c1", card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false };
  await store.grant(tag, { ...worth, quota: nanoUsd(300n), reference: "" });
  const groups = [terms({ tokensPerMinute: 1_000 })];
  const admit = async (number: number, changes: Partial<Parameters<typeof admitAsk>[0]> = {}) => {
    const ask = admitAsk({ tag, requestId: ridOf(number), inputTokens: 40, groups, ...changes });
    return { ask, permit: admitted(await store.admit(ask)) };
  };
  const idempotency = { key: hashOf("i"), fingerprint: hashOf("f") };
  const byBalance = await admit(1);
  const byCard = await admit(2, { keyHash: hashOf("cards"), plans: ["pro"], groups: [cardTerms()] });
  const byKey = await admit(3, { idempotency });
  const tokens = { input: 30, cachedInput: 0, cacheWrite: 0, output: 9, reasoning: 0 };
  const cost = { upstream: "east", model: "m", requests: 1, tokens, cost: nanoUsd(5n), absorbed: nanoUsd(0n) };
  const costs = [{ ...cost, charged: true }];
  const kept = { ...idempotency, streamed: false, untilMs: bench.nowMs() + DAY_MS };
  const settlements = [
    // Takes the balance below 300, which is reported, and is above its hold.
    settleAsk(byBalance.ask, byBalance.permit, {
      ...{ amount: 720n, counted: byBalance.permit.counted, tokensTaken: 40, tokensUsed: 400, tokens, costs },
    }),
    settleAsk(byCard.ask, byCard.permit, { amount: 60n, kind: "time_card", tokens, costs }),
    settleAsk(byKey.ask, byKey.permit, { amount: 9n, counted: byKey.permit.counted, idempotency: kept, tokens, costs }),
  ];
  return { store, tag, settlements };
}

test("each call that reads sees the batch, even if it is the first to read", async () => {
  const nameless = { since: "2026-05-31", until: "2026-05-31" };
  const looks = [
    ["getAccount", async ({ store, tag }) => (await store.getAccount(tag))?.balance],
    ["findAccount", async ({ store }) => (await store.findAccount("Greta"))?.lines],
    ["listAccounts", async ({ store }) => (await store.listAccounts(undefined, 9)).items],
    ["readKey", async ({ store, tag }) => (await store.readKey(tag, hashOf("key")))?.account.balance],
    ["readKey's budgets", async ({ store, tag }) => (await store.readKey(tag, hashOf("key")))?.budgets],
    ["readKey's cards", async ({ store, tag }) => (await store.readKey(tag, hashOf("cards")))?.entitlements],
    ["listKeys", async ({ store, tag }) => store.listKeys(tag)],
    ["listCards", async ({ store, tag }) => store.listCards(tag)],
    ["readDays", async ({ store, tag }) => store.readDays(tag, "2026-05-31", "2026-05-31")],
    ["pageDays", async ({ store, tag }) => store.pageDays(tag, nameless, undefined)],
    ["pageUpstreamDays", async ({ store, tag }) => store.pageUpstreamDays(tag, nameless, undefined)],
    ["readFigures", async ({ store, tag }) => store.readFigures(tag, { cards: ["c1"], requests: [ridOf(1)] })],
    ["readLedger", async ({ store, tag }) => store.readLedger(tag, 0, 9)],
    ["readNotices", async ({ store, tag }) => store.readNotices(tag, 9)],
    ["pageNotices", async ({ store }) => store.pageNotices(undefined, 9)],
    ["inspect", async ({ store, tag }) => store.inspect(tag)],
  ] satisfies [string, (of: Awaited<ReturnType<typeof furnished>>) => Promise<unknown>][];
  for (const [name, look] of looks) {
    const bench = new GatheringBench();
    const scene = await furnished(bench, "Greta");
    const before = await look(scene);
    const answers = scene.settlements.map((one) => scene.store.settle(one));
    const between = await look(scene);
    assert.notDeepEqual(between, before, name);
    bench.end();
    await Promise.all(answers);
    assert.deepEqual(between, await look(scene), name);
    await scene.store.close();
  }
});

test("a batch that does not fit on the disk leaves nothing behind, and the next one is written", async () => {
  for (const fails of ["writes", "commit", "commit after a look", "room"]) {
    const bench = new GatheringBench();
    const { store, tag, settlements } = await furnished(bench, "Hilde");
    const before = await store.inspect(tag);
    const outcomes: Promise<string>[] = [];
    for (const one of settlements) {
      outcomes.push(store.settle(one).then(({ outcome }) => outcome, String));
      // The writes caused by a read are not committed by it.
      if (fails === "commit after a look") await store.getAccount(tag);
    }
    if (fails === "room") {
      bench.raw.exec("PRAGMA max_page_count = 1");
      // A line as long as this needs a page.
      const memo = JSON.stringify({ long: "x".repeat(8_000) });
      outcomes.push(store.settle({ ...settlements[0], requestId: ridOf(9), memo } as never).then(String, String));
    }
    const other = fails === "writes" ? bench.failWrites() : fails.startsWith("commit") ? bench.failCommit() : undefined;
    bench.end();
    await other;
    for (const outcome of await Promise.all(outcomes)) assert.match(outcome, /StoreError/, fails);
    assert.deepEqual(await store.inspect(tag), before, fails);
    bench.raw.exec("PRAGMA max_page_count = 1000000");
    const again = settlements.map((one) => store.settle(one));
    bench.end();
    assert.deepEqual(
      (await Promise.all(again)).map(({ outcome }) => outcome),
      ["settled", "settled", "settled"],
    );
    const after = (await store.inspect(tag)) as AccountState;
    assertIdentities(after);
    assertDays(after);
    assert.deepEqual(
      [after.account.balance, after.budgets["d/key_Hilde"]?.now.spent, after.notices.waiting.length],
      [271n, 729n, 1],
    );
    await store.close();
  }
});

test("a budget period that was opened in a failed batch keeps nothing of it, and its charge counts once when repeated", async () => {
  const bench = new GatheringBench();
  const { store, tag, settlements } = await furnished(bench, "Hugo");
  const settle = () => settlements.map((one) => store.settle(one).then(({ outcome }) => outcome, String));
  const failed = settle();
  const other = bench.failCommit();
  bench.setTime(bench.nowMs() + DAY_MS / 2);
  const groups = [terms({ tokensPerMinute: 1_000 })];
  admitted(await store.admit(admitAsk({ tag, requestId: ridOf(5), groups })));
  await other;
  for (const outcome of await Promise.all(failed)) assert.match(outcome, /StoreError|FOREIGN KEY/);
  bench.end();
  const again = settle();
  bench.end();
  assert.deepEqual(await Promise.all(again), ["settled", "settled", "settled"]);
  const { budgets } = (await store.inspect(tag)) as AccountState;
  const { now, before } = budgets["d/key_Hugo"] ?? assert.fail();
  assert.deepEqual([now.spent, before.spent, before.held], [0n, 729n, 0n]);
  await store.close();
});

test("if the period of a budget cannot be opened, the request's idempotency key stays free", async () => {
  const bench = new GatheringBench();
  const { store, raw } = bench;
  const tag = await makeAccount(store, "Key", { funds: 1_000n });
  await store.changeKey(tag, "key_Key", { limits: limitsText({ budgets: { day: nanoUsd(500n) } }) });
  const idempotency = { key: "1".repeat(64), fingerprint: "2".repeat(64) };
  const request = admitAsk({ tag, requestId: ridOf(1), idempotency });
  raw.exec("CREATE TRIGGER full BEFORE INSERT ON budgets BEGIN SELECT RAISE(FAIL, 'full'); END");
  await assert.rejects(store.admit(request), /full/);
  raw.exec("DROP TRIGGER full");
  const { idempotency: kept, inFlight } = (await store.inspect(tag)) as AccountState;
  assert.deepEqual([kept, inFlight], [[], 0]);
  admitted(await store.admit(admitAsk({ tag, requestId: ridOf(2), idempotency })));
  await store.close();
});

test("a read that cannot write the batch gets the error, and then reads the previous state", async () => {
  const bench = new GatheringBench();
  const { store, tag, settlements } = await furnished(bench, "Ida");
  const before = await store.inspect(tag);
  const outcomes = settlements.map((one) => store.settle(one).then(({ outcome }) => outcome, String));
  const other = bench.failWrites();
  await assert.rejects(store.inspect(tag), /NOT NULL/);
  await other;
  for (const outcome of await Promise.all(outcomes)) assert.match(outcome, /NOT NULL/);
  assert.deepEqual(await store.inspect(tag), before);
  await store.close();
});

test("if the disk has ended the transaction, nothing of the batch counts as committed", async () => {
  for (const [looks, comesLate] of [
    [true, true],
    [true, false],
    [false, false],
  ]) {
    const bench = new GatheringBench();
    const { store, tag, settlements } = await furnished(bench, "Iris");
    const before = await store.inspect(tag);
    const settled = () => settlements.map((one) => store.settle(one).then(({ outcome }) => outcome, String));
    const first = settled();
    if (looks) await store.getAccount(tag);
    // SQLite does this by itself when a page cannot be read, whichever call needed it.
    bench.raw.exec("ROLLBACK");
    const late = { ...settlements[0], requestId: ridOf(9) } as (typeof settlements)[number];
    const outcomes = comesLate ? [...first, store.settle(late).then(({ outcome }) => outcome, String)] : first;
    bench.end();
    for (const outcome of await Promise.all(outcomes)) assert.match(outcome, /StoreError/);
    assert.deepEqual(await store.inspect(tag), before);
    const again = settled();
    bench.end();
    assert.deepEqual(await Promise.all(again), ["settled", "settled", "settled"]);
    await store.close();
  }
});

test("a settlement that finds the file locked changes nothing, and can be settled when the lock is released", async () => {
  const bench = await embeddedBench();
  const { store, dir } = bench;
  const tag = await makeAccount(store, "Ingo");
  const ask = admitAsk({ tag, requestId: ridOf(1) });
  const settlement = settleAsk(ask, admitted(await store.admit(ask)), { amount: 7n });
  const before = await store.inspect(tag);
  const other = new DatabaseSync(join(dir, "tollgate.db"));
  other.exec("BEGIN IMMEDIATE");
  await assert.rejects(store.settle(settlement), /locked/);
  other.exec("ROLLBACK");
  other.close();
  assert.deepEqual(await store.inspect(tag), before);
  assert.equal((await store.settle(settlement)).outcome, "settled");
  await bench.close();
});

test("a settlement that is committed by itself and fails leaves nothing behind either", async () => {
  const bench = new GatheringBench({ atOnce: true });
  const { store, tag, settlements } = await furnished(bench, "Jutta");
  const before = await store.inspect(tag);
  bench.raw.exec("CREATE TRIGGER full AFTER INSERT ON settled BEGIN INSERT INTO t (x) VALUES (7); END");
  for (const one of settlements) await assert.rejects(store.settle(one), /FOREIGN KEY/);
  bench.raw.exec("DROP TRIGGER full");
  const broken = () =>
    bench.db.commitTogether(() => {
      bench.db.batch.setAccount(tag, { balance: 1n, spent: 0n, seq: 9 });
      throw new Error("a defect");
    });
  assert.throws(broken, /a defect/);
  assert.deepEqual(await store.inspect(tag), before);
  const answers = await Promise.all(settlements.map((one) => store.settle(one)));
  assert.deepEqual(
    answers.map((one) => one.outcome === "settled" && one.balance),
    [280n, 280n, 271n],
  );
  assertIdentities((await store.inspect(tag)) as AccountState);
  await store.close();
});

test("a statement that is not part of the batch runs after it", async () => {
  const bench = new GatheringBench();
  const { store, tag, settlements } = await furnished(bench, "Kai");
  const answers = settlements.map((one) => store.settle(one));
  bench.db.run("UPDATE accounts SET bal = bal + 5 WHERE tag = ?", tag);
  bench.end();
  await Promise.all(answers);
  assert.equal((await store.getAccount(tag))?.balance, 276n);
  await store.close();
});

test("the sums of the days are those of the ledger after settlements of all kinds (property)", async () => {
  const charge = fc.record({
    account: fc.constantFrom("Jana", "Jens"),
    amount: fc.bigInt(0n, 150n),
    byCard: fc.boolean(),
    model: fc.constantFrom("m1", "m2"),
    daysAgo: fc.constantFrom(0, 1),
    again: fc.boolean(),
    ends: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(charge, { minLength: 1, maxLength: 60 }), async (charges) => {
      const bench = new GatheringBench();
      const { store } = bench;
      const nowMs = Date.UTC(2026, 4, 31, 12);
      bench.setTime(nowMs);
      for (const name of ["Jana", "Jens"]) {
        const tag = await makeAccount(store, name);
        const worth = { id: "c1", card: "day", plan: "pro", group: "big", lastsMs: DAY_MS, afterPrevious: false };
        await store.grant(tag, { ...worth, quota: nanoUsd(300n), reference: "" });
      }
      for (const [at, { account, amount, byCard, model, daysAgo, again, ends }] of charges.entries()) {
        const tag = account.padEnd(10, "0") as Parameters<typeof store.inspect>[0];
        const permit = {
          storeTimeMs: nowMs - daysAgo * DAY_MS,
          group: "big",
          keyId: `key_${account}`,
          entitlement: byCard ? "c1" : undefined,
        };
        const kind = byCard ? "time_card" : "pay_per_use";
        const ask = settleAsk({ tag, requestId: ridOf(at), groups: [] }, permit, { amount, model, kind });
        void store.settle(ask);
        if (again) void store.settle(ask);
        if (ends) bench.end();
      }
      // The first comparison is in the middle of the last batch.
      for (const name of ["Jana", "Jens"]) {
        const state = (await store.inspect(name.padEnd(10, "0") as never)) as AccountState;
        const count = charges.filter(({ account }) => account === name).length;
        assert.equal(state.ledger.filter(({ kind }) => kind === "usage").length, count);
        assertIdentities(state);
        assertDays(state);
      }
      bench.end();
      await store.close();
    }),
    { numRuns: RUNS },
  );
});

test("a card that paid in the batch pays no more than what is left of it", async () => {
  const bench = new GatheringBench();
  const { store, tag, settlements } = await furnished(bench, "Karla");
  const byCard = settlements[1] as (typeof settlements)[number];
  const first = store.settle({ ...byCard, amount: nanoUsd(250n) });
  const second = store.settle({ ...byCard, requestId: ridOf(7), amount: nanoUsd(250n) });
  const asked = await store.admit(
    admitAsk({ tag, requestId: ridOf(8), keyHash: hashOf("cards"), plans: ["pro"], groups: [cardTerms()] }),
  );
  assert.deepEqual([asked.outcome, asked.outcome === "refused" && asked.cause], ["refused", "quota_used"]);
  bench.end();
  assert.deepEqual(
    (await Promise.all([first, second])).map((one) => one.outcome === "settled" && [one.charged, one.absorbed]),
    [
      [250n, 0n],
      [50n, 200n],
    ],
  );
  await store.close();
});

for (const atOnce of [false, true]) {
  const where = atOnce ? "in the table" : "in the batch";
  test(`a mark ${where} expires, and the lines show that its request was settled`, async () => {
    const bench = new GatheringBench({ atOnce });
    const { store, tag, settlements } = await furnished(bench, "Lena");
    const [first] = settlements as [(typeof settlements)[number]];
    const answers = [store.settle(first), store.settle(first)];
    bench.setTime(bench.nowMs() + SETTLED_MARK_MS);
    answers.push(store.settle(first));
    bench.setTime(bench.nowMs() + 1);
    answers.push(store.settle(first));
    bench.setTime(bench.nowMs() + SETTLED_MARK_MS + 1);
    // As if its clock had been moved, too.
    answers.push(store.settle({ ...first, admittedAtMs: bench.nowMs() }));
    bench.end();
    const outcomes = (await Promise.all(answers)).map(({ outcome }) => outcome);
    assert.deepEqual(outcomes, ["settled", "duplicate", "duplicate", "duplicate", "duplicate"]);
    assert.equal((await store.readDays(tag, utcDay(first.admittedAtMs), utcDay(first.admittedAtMs))).length, 1);
    await store.close();
  });
}

test("every sixteenth settlement deletes expired marks", async () => {
  const bench = new GatheringBench();
  const { store, tag, settlements } = await furnished(bench, "Mona");
  const [first] = settlements as [(typeof settlements)[number]];
  const marks = () => bench.raw.prepare("SELECT count(*) AS n FROM settled WHERE rid = ?").get(ridOf(1))?.n;
  void store.settle(first);
  bench.end();
  bench.setTime(bench.nowMs() + SETTLED_MARK_MS + 1);
  const permit = { storeTimeMs: bench.nowMs(), group: "big", keyId: "key_Mona", entitlement: undefined };
  const counted = Array.from({ length: 16 }, (_, at) => {
    void store.settle(settleAsk({ tag, requestId: ridOf(20 + at), groups: [] }, permit, { amount: 1n }));
    bench.end();
    return marks();
  });
  assert.deepEqual(counted, [...Array(15).fill(1), 0]);
  await store.close();
});

test("an expired card that was removed from the list still pays when the clock is set back to its time", async () => {
  const bench = new GatheringBench();
  const { store, tag, settlements } = await furnished(bench, "Nora");
  const byCard = settlements[1] as (typeof settlements)[number];
  const beganMs = bench.nowMs();
  bench.setTime(beganMs + 9 * DAY_MS);
  const worth = { id: "c2", card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false };
  await store.grant(tag, { ...worth, quota: nanoUsd(300n), reference: "" });
  bench.setTime(beganMs);
  const answers = [
    store.settle({ ...byCard, amount: nanoUsd(250n) }),
    store.settle({ ...byCard, requestId: ridOf(7), amount: nanoUsd(250n) }),
  ];
  bench.end();
  assert.deepEqual(
    (await Promise.all(answers)).map((one) => one.outcome === "settled" && one.charged),
    [250n, 50n],
  );
  await store.close();
});

test("a batch has a maximum size: the settlement that reaches it is committed with the whole batch", async () => {
  const bench = new GatheringBench();
  const { store } = bench;
  const tag = await makeAccount(store, "Marta", { funds: 10_000n });
  const permit = { storeTimeMs: bench.nowMs(), group: "big", keyId: "key_Marta", entitlement: undefined };
  const answers = Array.from({ length: GATHER_MAX }, (_, at) =>
    store.settle(settleAsk({ tag, requestId: ridOf(at), groups: [] }, permit, { amount: 1n })),
  );
  await Promise.all(answers.slice(0, 1));
  assert.equal(bench.lines(), GATHER_MAX);
  assert.equal(bench.end(), 1);
  await store.close();
});
