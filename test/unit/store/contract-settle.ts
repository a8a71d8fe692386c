/** What is charged, absorbed and written, exactly once. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { readOpening } from "../../../src/store/ledger/opening.ts";
import type { AccountState } from "../../../src/store/records.ts";
import { SETTLED_IDS_MAX } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { utcDay } from "../../../src/values/time.ts";
import {
  admitAsk,
  admitted,
  cardTerms,
  causeOf,
  DAY_MS,
  hashOf,
  leftUnpaid,
  makeAccount,
  ridOf,
  settleAsk,
  tagOf,
  terms,
} from "./asks.ts";
import type { Ask } from "./contract.ts";

async function stateOf(store: Store, tag: AccountTag): Promise<AccountState> {
  const state = await store.inspect(tag);
  assert.ok(state);
  return state;
}

const movements = (state: AccountState) =>
  state.ledger.map((l) => `${l.seq} ${l.kind} ${l.debit}>${l.credit} ${l.amount} =${l.balance}`);

/**
 * Asserts that balance and cards are the sums of the lines that touch them, and held amounts the sums of the holds
 * (docs/failure-model.md invariants 1 to 3).
 */
export function assertIdentities(state: AccountState): void {
  const { account } = state;
  let sum = 0n;
  for (const line of state.ledger) {
    if (line.credit === account.id) sum += line.amount;
    if (line.debit === account.id) sum -= line.amount;
  }
  assert.equal(account.balance, sum, "the ledger's sum");
  assert.equal(account.balance, account.topped - account.spent, "the counters");
  const heldOf = (id: string | undefined) =>
    state.holds.filter((hold) => hold.entitlement === id).reduce((total, hold) => total + hold.amount, 0n);
  assert.equal(account.held, heldOf(undefined), "the holds");
  for (const card of state.entitlements) {
    assert.equal(card.held, heldOf(card.id), `the holds of ${card.id}`);
    const archived = archivedOf(state, `ent_${card.id}`);
    const moved = (side: "debit" | "credit") =>
      state.ledger
        .filter((line) => line[side] === `ent_${card.id}`)
        .reduce((total, line) => total + line.amount, archived[side]);
    assert.equal(moved("credit"), card.quota ?? 0n, `the value of ${card.id} is in the ledger`);
    assert.equal(moved("debit"), card.spent, `what ${card.id} has paid is in the ledger`);
    assert.ok(card.spent + card.held <= (card.quota ?? 0n), `${card.id} pays no more than its value`);
  }
  assert.equal(state.inFlight, state.holds.length);
  assert.ok(account.balance - account.held >= 0n, "never below zero");
}

/** What the opening line says of a card. */
function archivedOf({ ledger: [first] }: AccountState, card: string): { debit: bigint; credit: bigint } {
  const facts = first?.kind === "opening" ? readOpening(first.memo)?.cards.get(card) : undefined;
  return { debit: facts?.spent ?? 0n, credit: facts?.quota ?? 0n };
}

export function settlementTests(ask: Ask): void {
  test("a charge is posted once; the same again is a duplicate, and another amount a mismatch (invariants 4, 6)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sonce");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const charge = settleAsk(request, permit, { amount: 40n });
    assert.deepEqual(await store.settle(charge), { outcome: "settled", charged: 40n, absorbed: 0n, balance: 960n });
    assert.deepEqual(await store.settle(charge), { outcome: "duplicate" });
    assert.deepEqual(await store.settle({ ...charge, amount: nanoUsd(41n) }), { outcome: "mismatch", recorded: 40n });
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state), [
      "1 topup topup>acct_Sonce00000 1000 =1000",
      "2 usage acct_Sonce00000>revenue:big 40 =960",
    ]);
    assert.deepEqual(state.days, { [utcDay(permit.storeTimeMs)]: { "big|big-1|key_Sonce": 40n } });
    const none = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0 };
    assert.deepEqual(state.counts[utcDay(permit.storeTimeMs)], { "big|big-1|key_Sonce": { requests: 1, ...none } });
    assert.deepEqual(state.settled, [ridOf(1)]);
    assertIdentities(state);
  });

  test("settled amounts are found by id, and none for held or unknown requests or those of another account", async () => {
    const { store } = ask();
    const [tag, other] = [await makeAccount(store, "Slooked"), await makeAccount(store, "Slookedtoo")];
    for (const [rid, amount] of [
      [1, 60n],
      [2, 0n],
    ] as const) {
      const request = admitAsk({ tag, requestId: ridOf(rid) });
      await store.settle(settleAsk(request, admitted(await store.admit(request)), { amount, voided: amount === 0n }));
    }
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(3) })));
    const ids = [4, 3, 2, 1, 1].map(ridOf);
    assert.deepEqual(await store.settledAmounts(tag, ids), [undefined, undefined, 0n, 60n, 60n]);
    assert.deepEqual(await store.settledAmounts(other, [ridOf(1)]), [undefined]);
    assert.deepEqual(await store.settledAmounts(tagOf("nobody"), [ridOf(1)]), [undefined]);
    assert.deepEqual(await store.settledAmounts(tag, []), []);
    const many = Array.from({ length: SETTLED_IDS_MAX }, (_, at) => ridOf(1 + at));
    assert.deepEqual((await store.settledAmounts(tag, many)).slice(0, 3), [60n, 0n, undefined]);
    await assert.rejects(async () => store.settledAmounts(tag, [...many, ridOf(1)]), /at most 128 requests/);
  });

  test("a settled request that is admitted again gets its old answer and holds nothing", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sagain");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    await store.settle(settleAsk(request, permit, { amount: 1n }));
    assert.deepEqual(await store.admit(request), permit);
    assert.equal((await stateOf(store, tag)).inFlight, 0);
  });

  test("a request that was voided before it arrives is refused and holds nothing (row B4)", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Searly");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const unknown = { storeTimeMs: nowMs(), group: "", keyId: "", entitlement: undefined };
    const answer = await store.settle(settleAsk(request, unknown, { voided: true }));
    assert.equal(answer.outcome, "settled");
    assert.equal(causeOf(await store.admit(request)), "concurrency");
    assert.deepEqual((await stateOf(store, tag)).holds, []);
  });

  test("a charge above its hold takes free funds, and only the rest is absorbed (promise 1)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sover", { funds: 150n });
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(2) })));
    const answer = await store.settle(settleAsk(request, permit, { amount: 130n }));
    assert.deepEqual(answer, { outcome: "settled", charged: 100n, absorbed: 30n, balance: 50n });
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state).slice(1), [
      "2 usage acct_Sover00000>revenue:big 100 =50",
      "3 absorbed absorbed:over_hold>revenue:big 30 =50",
    ]);
    assertIdentities(state);
  });

  test("a voided request gives its whole hold back, and the cost of its attempt is a separate line", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Svoid");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const voided = settleAsk(request, permit, { voided: true });
    assert.deepEqual(await store.settle(voided), { outcome: "settled", charged: 0n, absorbed: 0n, balance: 1_000n });
    assert.equal((await stateOf(store, tag)).ledger.length, 1);
    const failed = admitAsk({ tag, requestId: ridOf(2) });
    const permit2 = admitted(await store.admit(failed));
    await store.settle(
      settleAsk(failed, permit2, { voided: true, absorbed: 7n, absorbedCause: "client_gone", upstream: "east" }),
    );
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state).slice(1), ["2 absorbed absorbed:client_gone>upstream:east 7 =1000"]);
    assertIdentities(state);
  });

  test("a disconnect before the first byte is free within the allowance and charged beyond it (promise 3)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sleft");
    const leave = async (rid: number, allowance = 100n) => {
      const key = { key: hashOf(`left ${rid}`), fingerprint: hashOf("body") };
      const request = admitAsk({
        tag,
        requestId: ridOf(rid),
        idempotency: key,
        groups: [terms({ tokensPerMinute: 1_000 })],
      });
      const permit = admitted(await store.admit({ ...request, inputTokens: 10 }));
      const gone = settleAsk(request, permit, {
        voided: true,
        absorbed: 40n,
        absorbedCause: "client_gone",
        upstream: "east",
        tokensTaken: 10,
        tokensUsed: 30,
        tokens: { input: 30, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0 },
        memo: '{"who":"nobody"}',
        leftUnpaid: leftUnpaid(allowance, 60n, { memo: '{"who":"client"}' }),
        idempotency: { ...key, streamed: false, untilMs: permit.storeTimeMs + 60_000 },
      });
      const answer = await store.settle(gone);
      assert.deepEqual(await store.settle(gone), { outcome: "duplicate" });
      const other = await store.settle({ ...gone, leftUnpaid: { ...gone.leftUnpaid, amount: nanoUsd(61n) } as never });
      const same = answer.outcome === "settled" && answer.charged === 0n;
      assert.deepEqual(other, same ? { outcome: "duplicate" } : { outcome: "mismatch", recorded: 60n });
      return answer.outcome === "settled" ? [answer.charged, answer.absorbed, answer.balance] : [answer.outcome];
    };
    assert.deepEqual(await leave(1), [0n, 0n, 1_000n]);
    assert.deepEqual(await leave(2), [0n, 0n, 1_000n]);
    assert.deepEqual(await leave(3), [60n, 0n, 940n], "20 are left of 100");
    assert.deepEqual(await leave(4, 0n), [60n, 0n, 880n], "with an allowance of 0 nothing is free");
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state).slice(1), [
      "2 absorbed absorbed:client_gone>upstream:east 40 =1000",
      "3 absorbed absorbed:client_gone>upstream:east 40 =1000",
      "4 usage acct_Sleft00000>revenue:big 60 =940",
      "5 usage acct_Sleft00000>revenue:big 60 =880",
    ]);
    assert.deepEqual(
      state.ledger.slice(1).map(({ memo }) => memo),
      ["nobody", "nobody", "client", "client"].map((who) => `{"who":"${who}"}`),
    );
    assert.equal(state.buckets.left?.debt, 80);
    assert.deepEqual(state.idempotency.map(({ requestId, state: end }) => [requestId, end]).sort(), [
      [ridOf(3), "finished"],
      [ridOf(4), "finished"],
    ]);
    const [counted] = Object.values(Object.values(state.counts)[0] ?? {});
    assert.deepEqual([counted?.requests, counted?.input], [2, 60]);
    assertIdentities(state);
  });

  test("of thirty disconnects at once exactly those within the allowance are free (invariant 7)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sthirty", { funds: 5_000n });
    const requests = Array.from({ length: 30 }, (_, i) => admitAsk({ tag, requestId: ridOf(i + 1) }));
    const permits = await Promise.all(requests.map(async (request) => admitted(await store.admit(request))));
    const facts = { voided: true, absorbed: 30n, leftUnpaid: leftUnpaid(100n, 60n) };
    const gone = requests.map((request, i) => settleAsk(request, permits[i] as (typeof permits)[0], facts));
    const answers = await Promise.all([...gone, ...gone].map((one) => store.settle(one)));
    const charged = answers.map((answer) => (answer.outcome === "settled" ? answer.charged : undefined));
    const count = (of: bigint | undefined) => charged.filter((one) => one === of).length;
    assert.deepEqual([count(0n), count(60n), count(undefined)], [3, 27, 30]);
    const state = await stateOf(store, tag);
    assert.equal(state.account.balance, 5_000n - 27n * 60n);
    assert.equal(state.buckets.left?.debt, 90);
    assertIdentities(state);
  });

  test("an account whose charges repeatedly exceed its funds is held at the highest possible cost (promise 1)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sdear", { funds: 0n });
    const groups = [terms({ worstCase: { holdFull: nanoUsd(400n), holdMin: nanoUsd(300n) } })];
    const heldFor = async (rid: number, funds: bigint, amount: bigint) => {
      await bringTo(store, tag, rid, funds);
      const request = admitAsk({ tag, requestId: ridOf(rid), groups });
      const permit = admitted(await store.admit(request));
      assert.deepEqual(await store.admit(request), permit, "the same request again gets the same answer");
      await store.settle(settleAsk(request, permit, { amount }));
      return [permit.hold, permit.worstCase === true];
    };
    // 12 above a hold of 100 are ignored.
    assert.deepEqual(await heldFor(1, 100n, 112n), [100n, false]);
    assert.deepEqual(await heldFor(2, 100n, 113n), [100n, false]);
    assert.deepEqual(await heldFor(3, 200n, 213n), [100n, false]);
    // Charges above the hold do no harm if they are paid in full.
    for (const rid of [4, 5, 6]) assert.deepEqual(await heldFor(rid, 900n, 900n), [100n, false]);
    assert.deepEqual(await heldFor(7, 100n, 500n), [100n, false]);
    assert.deepEqual(await heldFor(8, 400n, 400n), [400n, true]);
    assert.deepEqual(await heldFor(9, 2_000n, 1_500n), [400n, true]);
    // Less than the minimum of the higher hold, and more than the usual hold.
    await bringTo(store, tag, 10, 262n);
    const poor = admitAsk({ tag, requestId: ridOf(10), groups });
    assert.equal(causeOf(await store.admit(poor)), "insufficient_balance");
    // A request without a higher hold is held as usual.
    const older = admitted(await store.admit(admitAsk({ tag, requestId: ridOf(11) })));
    assert.deepEqual([older.hold, older.worstCase], [100n, undefined]);
    assertIdentities(await stateOf(store, tag));
  });

  test("two charges at once above their holds are counted once each, and voided requests are not counted", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Stwelve", { funds: 1_200n });
    const requests = Array.from({ length: 12 }, (_, i) => admitAsk({ tag, requestId: ridOf(i + 1) }));
    const permits = await Promise.all(requests.map(async (request) => admitted(await store.admit(request))));
    const ends = requests.map((request, i) =>
      settleAsk(
        request,
        permits[i] as (typeof permits)[0],
        i < 2 ? { amount: 300n } : { voided: true, absorbed: 900n },
      ),
    );
    await Promise.all([...ends, ...ends].map((end) => store.settle(end)));
    const days = (await stateOf(store, tag)).buckets.over?.debt ?? 0;
    assert.equal(Math.ceil(days / DAY_MS), 2 * 7);
  });

  test("failed tries are separate lines after the charge, written once", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Stries");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    const attempts = [
      { upstream: "east", cause: "upstream_timeout", amount: nanoUsd(7n), memo: '{"try":"é\\u0000"}' },
      { upstream: "west", cause: "client_gone", amount: nanoUsd(9_000_000_000_000_000n), memo: "{}" },
    ];
    const charge = settleAsk(request, permit, { amount: 40n, attempts });
    assert.deepEqual(await store.settle(charge), { outcome: "settled", charged: 40n, absorbed: 0n, balance: 960n });
    assert.deepEqual(await store.settle(charge), { outcome: "duplicate" });
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state).slice(1), [
      "2 usage acct_Stries0000>revenue:big 40 =960",
      "3 absorbed absorbed:upstream_timeout>upstream:east 7 =960",
      "4 absorbed absorbed:client_gone>upstream:west 9000000000000000 =960",
    ]);
    assert.deepEqual(
      state.ledger.slice(2).map(({ memo }) => memo),
      attempts.map(({ memo }) => memo),
    );
    await assert.rejects(store.settle({ ...charge, attempts: Array(9).fill(attempts[0]) }), RangeError);
    assertIdentities(state);
  });

  test("a card pays up to its quota and never more (invariant 12)", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Scard", { group: "cards", funds: 500n });
    const quota = nanoUsd(120n);
    const card = {
      id: "Scard1",
      card: "day",
      plan: "pro",
      group: "cards",
      lastsMs: DAY_MS,
      afterPrevious: false,
      reference: "c",
    };
    await store.grant(tag, { ...card, quota });
    const groups = [cardTerms()];
    const request = admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups });
    const permit = admitted(await store.admit(request));
    const answer = await store.settle(settleAsk(request, permit, { amount: 150n }));
    assert.deepEqual(answer, { outcome: "settled", charged: 120n, absorbed: 30n, balance: 500n });
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state).slice(1), [
      "2 card cards:day>ent_Scard1 120 =500",
      "3 usage ent_Scard1>revenue:cards 120 =500",
      "4 absorbed absorbed:over_hold>revenue:cards 30 =500",
    ]);
    assert.equal(state.entitlements[0]?.spent, 120n);
    assertIdentities(state);
  });

  test("a charge to one card cannot use what is held of another card", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sother", { group: "cards", funds: 500n });
    const request = (n: number) =>
      admitAsk({ tag, requestId: ridOf(n), plans: ["free", "pro"], groups: [cardTerms()] });
    const paidBy = async (n: number, id: string, quota: bigint) => {
      const card = { id, card: "day", plan: "pro", group: "cards", afterPrevious: false, reference: "c" };
      await store.grant(tag, { ...card, lastsMs: n * DAY_MS, quota: nanoUsd(quota) });
      const permit = admitted(await store.admit(request(n)));
      assert.deepEqual([permit.entitlement, permit.hold], [id, 100n]);
      return permit;
    };
    const permit = await paidBy(1, "So1", 100n);
    await paidBy(2, "So2", 120n);
    const answer = await store.settle(settleAsk(request(1), { ...permit, entitlement: "So2" }, { amount: 90n }));
    assert.ok(answer.outcome === "settled");
    assert.deepEqual([answer.charged, answer.absorbed], [20n, 70n]);
    assertIdentities(await stateOf(store, tag));
  });

  test("a request on a card without a quota writes a line of 0", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Sunmetered", { group: "cards", funds: 0n });
    const card = {
      id: "Sun",
      card: "day",
      plan: "pro",
      group: "cards",
      lastsMs: DAY_MS,
      afterPrevious: false,
      reference: "c",
    };
    await store.grant(tag, { ...card, quota: undefined });
    const request = admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups: [cardTerms()] });
    const permit = admitted(await store.admit(request));
    await store.settle(settleAsk(request, permit, { memo: '{"input":5}' }));
    const state = await stateOf(store, tag);
    assert.deepEqual(movements(state).slice(1), ["2 usage ent_Sun>revenue:cards 0 =0"]);
    assert.equal(state.ledger[1]?.memo, '{"input":5}');
    // The request counts nevertheless, so that usage shows what the card is used for.
    const day = utcDay(permit.storeTimeMs);
    assert.deepEqual(state.days, { [day]: { "cards|big-1|key_Sunmetered": 0n } });
    assert.equal(state.counts[day]?.["cards|big-1|key_Sunmetered"]?.requests, 1);
  });

  test("a charge to an unknown account changes nothing (row B12)", async () => {
    const { store, nowMs } = ask();
    const request = admitAsk({ tag: "Sghost0000" as AccountTag, requestId: ridOf(1) });
    const permit = { storeTimeMs: nowMs(), group: "big", keyId: "k", entitlement: undefined };
    assert.deepEqual(await store.settle(settleAsk(request, permit, { amount: 1n })), { outcome: "unknown_account" });
    assert.equal(await store.inspect(request.tag), undefined);
  });

  test("the largest charge leaves exactly one nano-dollar (invariant 8)", async () => {
    const { store } = ask();
    const most = 9_000_000_000_000_000n;
    const tag = await makeAccount(store, "Slargest", { funds: most });
    const request = admitAsk({ tag, requestId: ridOf(1), groups: [terms({ holdFull: most })] });
    const permit = admitted(await store.admit(request));
    const answer = await store.settle(settleAsk(request, permit, { amount: most - 1n }));
    assert.deepEqual(answer, { outcome: "settled", charged: most - 1n, absorbed: 0n, balance: 1n });
    assertIdentities(await stateOf(store, tag));
  });
}

/** Pays in or withdraws the difference between the account's balance and these funds. @param nth names the payment. */
async function bringTo(store: Store, tag: AccountTag, nth: number, funds: bigint): Promise<void> {
  const { balance = 0n } = (await store.getAccount(tag)) ?? {};
  if (balance === funds) return;
  await store.credit(tag, { id: `to-${nth}`, amount: nanoUsd(funds - balance), kind: "adjust", note: "" });
}

/** Tests for stores whose clock the test sets. */
export function settlementTimeTests(ask: Ask): void {
  test("an account is held as usual again a week after its charges last exceeded their holds", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Sweek", { funds: 0n });
    const groups = [terms({ worstCase: { holdFull: nanoUsd(400n), holdMin: nanoUsd(10n) } })];
    const held = async (rid: number, amount: bigint, funds = 400n) => {
      await bringTo(store, tag, rid, funds);
      const request = admitAsk({ tag, requestId: ridOf(rid), groups });
      const permit = admitted(await store.admit(request));
      await store.settle(settleAsk(request, permit, { amount }));
      return permit.hold;
    };
    const start = nowMs();
    for (const rid of [1, 2, 3]) assert.equal(await held(rid, 200n, 100n), 100n);
    const { overrun } = (await store.readLimits(tag, "big")) ?? {};
    assert.deepEqual(overrun, { debt: 3 * 7 * DAY_MS, atMs: start });
    setTime(start + 7 * DAY_MS - 60_000);
    assert.equal(await held(4, 200n), 400n);
    setTime(start + 7 * DAY_MS + 60_000);
    assert.equal(await held(5, 50n), 100n);
  });

  test("an account is held as usual again a week after its last charge above its hold, however many there were", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Stwelveweek", { funds: 0n });
    const groups = [terms({ worstCase: { holdFull: nanoUsd(400n), holdMin: nanoUsd(10n) } })];
    const held = async (rid: number, amount: bigint, funds = 400n) => {
      await bringTo(store, tag, rid, funds);
      const request = admitAsk({ tag, requestId: ridOf(rid), groups });
      const permit = admitted(await store.admit(request));
      await store.settle(settleAsk(request, permit, { amount }));
      return permit.hold;
    };
    const start = nowMs();
    for (const rid of [1, 2, 3]) assert.equal(await held(rid, 200n, 100n), 100n);
    for (const rid of [4, 5, 6, 7, 8, 9, 10]) assert.equal(await held(rid, 500n), 400n);
    // The last two, three days later.
    setTime(start + 3 * DAY_MS);
    for (const rid of [11, 12]) assert.equal(await held(rid, 500n), 400n);
    const { overrun } = (await store.readLimits(tag, "big")) ?? {};
    assert.equal(overrun?.debt, 3 * 7 * DAY_MS);
    setTime(start + 10 * DAY_MS - 60_000);
    assert.equal(await held(13, 50n), 400n);
    setTime(start + 10 * DAY_MS + 60_000);
    assert.equal(await held(14, 50n), 100n);
  });

  test("a charge that is the first call after its hold has expired gives the hold back once", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Sended");
    const late = admitAsk({ tag, requestId: ridOf(1), holdTtlMs: 1_000 });
    const permit = admitted(await store.admit(late));
    const { hold } = admitted(await store.admit(admitAsk({ tag, requestId: ridOf(2) })));
    setTime(nowMs() + 1_001);
    assert.equal((await store.settle(settleAsk(late, permit, { amount: 40n }))).outcome, "settled");
    const state = await stateOf(store, tag);
    assert.deepEqual([state.account.held, state.inFlight], [hold, 1]);
    assertIdentities(state);
  });

  test("a used allowance is restored over a day", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Sday");
    const leave = async (rid: number) => {
      const request = admitAsk({ tag, requestId: ridOf(rid) });
      const permit = admitted(await store.admit(request));
      const facts = { voided: true, absorbed: 50n, leftUnpaid: leftUnpaid(100n, 1n) };
      const answer = await store.settle(settleAsk(request, permit, facts));
      return answer.outcome === "settled" && answer.charged === 0n;
    };
    const start = nowMs();
    const letOff = [await leave(1), await leave(2), await leave(3)];
    setTime(start + DAY_MS / 2 - 60_000);
    letOff.push(await leave(4));
    setTime(start + DAY_MS / 2 + 60_000);
    letOff.push(await leave(5), await leave(6));
    assert.deepEqual(letOff, [true, true, false, false, true, false]);
  });
}
