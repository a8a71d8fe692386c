/** Buckets, holds and cards by the store's own clock. */
import assert from "node:assert/strict";
import test from "node:test";
import { ENTITLEMENT_LINGER_MS, SETTLE_HORIZON_MS, SETTLED_MARK_MS } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import {
  admitAsk,
  admitted,
  cardTerms,
  causeOf,
  codeHashOf,
  DAY_MS,
  makeAccount,
  ridOf,
  settleAsk,
  terms,
} from "./asks.ts";
import type { Ask } from "./contract.ts";
import { assertIdentities } from "./contract-settle.ts";

export function limitTests(ask: Ask): void {
  test("requests are admitted again exactly after retry-after, and not a millisecond earlier (invariant 14)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lrate", { funds: 10_000n });
    const groups = [terms({ requestsPerMinute: 7 })];
    const go = (number: number) => store.admit(admitAsk({ tag, requestId: ridOf(number), groups }));
    for (let number = 1; number <= 7; number++) {
      assert.deepEqual(admitted(await go(number)).limits.requests, {
        limit: 7,
        remaining: 7 - number,
        resetMs: Math.ceil((number * 60_000) / 7),
      });
    }
    const refused = await go(8);
    assert.equal(causeOf(refused), "requests");
    const waitMs = refused.outcome === "refused" ? (refused.retryAfterMs ?? 0) : 0;
    assert.equal(waitMs, Math.ceil(60_000 / 7));
    setTime(nowMs() + waitMs - 1);
    assert.equal(causeOf(await go(9)), "requests");
    setTime(nowMs() + 1);
    assert.equal(causeOf(await go(10)), "admitted");
  });

  test("limits are read as the next admission would find them, and reading changes nothing", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lread", { funds: 10_000n });
    assert.equal(await store.readLimits("LnoAccount" as typeof tag, "big"), undefined);
    assert.deepEqual(await store.readLimits(tag, "big"), {
      requests: undefined,
      tokens: undefined,
      overrun: undefined,
      inFlight: 0,
      inFlightOfAccount: 0,
      storeTimeMs: nowMs(),
    });
    const groups = [terms({ requestsPerMinute: 7, tokensPerMinute: 600 })];
    const go = (number: number, holdTtlMs: number) =>
      store.admit(admitAsk({ tag, requestId: ridOf(number), groups, inputTokens: 100, holdTtlMs }));
    admitted(await go(1, 1_000));
    admitted(await go(2, 60_000));
    const takenAtMs = nowMs();
    const usage = {
      requests: { debt: 2 * 60_000, atMs: takenAtMs },
      tokens: { debt: 200 * 60_000, atMs: takenAtMs },
      overrun: undefined,
      inFlight: 2,
      inFlightOfAccount: 2,
      storeTimeMs: takenAtMs,
    };
    const before = await store.inspect(tag);
    assert.deepEqual(await store.readLimits(tag, "big"), usage);
    const elsewhere = { ...usage, requests: undefined, tokens: undefined, inFlight: 0 };
    assert.deepEqual(await store.readLimits(tag, "big/key_other"), elsewhere);
    setTime(nowMs() + 1_000);
    // The first hold has expired; the buckets are as they were stored.
    const later = { ...usage, inFlight: 1, inFlightOfAccount: 1, storeTimeMs: nowMs() };
    assert.deepEqual(await store.readLimits(tag, "big"), later);
    setTime(takenAtMs);
    assert.deepEqual(await store.inspect(tag), before);
  });

  test("tokens are taken by estimate and corrected by use, and a debt delays the next request exactly", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Ltokens", { funds: 10_000n });
    const groups = [terms({ tokensPerMinute: 600 })];
    const first = admitAsk({ tag, requestId: ridOf(1), groups, inputTokens: 100 });
    const permit = admitted(await store.admit(first));
    assert.equal(permit.limits.tokens?.remaining, 500);
    await store.settle(settleAsk(first, permit, { amount: 1n, tokensTaken: 100, tokensUsed: 900 }));
    const next = (number: number) => store.admit(admitAsk({ tag, requestId: ridOf(number), groups, inputTokens: 60 }));
    const refused = await next(2);
    assert.deepEqual(refused, {
      outcome: "refused",
      cause: "tokens",
      group: "big",
      retryAfterMs: 36_000,
      limits: { requests: undefined, tokens: { limit: 600, remaining: 0, resetMs: 90_000 } },
    });
    setTime(nowMs() + 35_999);
    assert.equal(causeOf(await next(3)), "tokens");
    setTime(nowMs() + 1);
    assert.equal(causeOf(await next(4)), "admitted");
  });

  test("an unused request gives its tokens back, up to a full bucket, but not its place in the request bucket", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Lgiveback");
    const groups = [terms({ tokensPerMinute: 600, requestsPerMinute: 60 })];
    const request = admitAsk({ tag, requestId: ridOf(1), groups, inputTokens: 100 });
    const permit = admitted(await store.admit(request));
    await store.settle(settleAsk(request, permit, { voided: true, tokensTaken: 100, tokensUsed: 0 }));
    const debts = async () => {
      const { buckets } = (await store.inspect(tag)) ?? {};
      return [buckets?.["big:t"]?.debt, buckets?.["big:r"]?.debt];
    };
    assert.deepEqual(await debts(), [0, 60_000]);
    // The client does not pay, but the model's server has read the input.
    const left = admitAsk({ tag, requestId: ridOf(2), groups, inputTokens: 100 });
    const taken = { voided: true, tokensTaken: 100, tokensUsed: 50 };
    await store.settle(settleAsk(left, admitted(await store.admit(left)), taken));
    assert.deepEqual(await debts(), [50 * 60_000, 2 * 60_000]);
    // Output that was only estimated takes no more tokens than the input.
    const hung = admitAsk({ tag, requestId: ridOf(3), groups, inputTokens: 100 });
    const more = { voided: true, tokensTaken: 100, tokensUsed: 30_000 };
    await store.settle(settleAsk(hung, admitted(await store.admit(hung)), more));
    assert.deepEqual(await debts(), [150 * 60_000, 3 * 60_000]);
  });

  test("an account has at most 1,000 requests in flight whatever its group allows, and the refusal says so", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Laccount", { funds: 10_000_000n });
    const go = (number: number, concurrency = 2_000) =>
      store.admit(admitAsk({ tag, requestId: ridOf(number), groups: [terms({ concurrency })] }));
    const first = admitted(await go(1));
    for (let number = 2; number <= 999; number++) admitted(await go(number));
    const ofGroup = await go(1_001, 999);
    assert.ok(ofGroup.outcome === "refused" && ofGroup.cause === "concurrency");
    assert.equal(ofGroup.limitOfAccount, undefined);
    admitted(await go(1_000));
    const refused = await go(1_001);
    assert.ok(refused.outcome === "refused" && refused.cause === "concurrency");
    assert.deepEqual([refused.limitOfAccount, refused.limitOfKey], [1_000, undefined]);
    await store.settle(settleAsk(admitAsk({ tag, requestId: ridOf(1) }), first, { voided: true }));
    admitted(await go(1_002));
  });

  test("an estimate larger than the bucket is admitted when the bucket is full, and is taken in full", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Llarge");
    const groups = [terms({ tokensPerMinute: 100 })];
    const go = (number: number) => store.admit(admitAsk({ tag, requestId: ridOf(number), groups, inputTokens: 250 }));
    assert.equal(causeOf(await go(1)), "admitted");
    const refused = await go(2);
    assert.equal(refused.outcome === "refused" && refused.retryAfterMs, 150_000);
    setTime(nowMs() + 149_999);
    assert.equal(causeOf(await go(3)), "tokens");
    setTime(nowMs() + 1);
    assert.equal(causeOf(await go(4)), "admitted");
  });

  test("a request refused for tokens keeps its place in the request bucket, and a second try takes none", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Lkeep");
    const groups = [terms({ requestsPerMinute: 10, tokensPerMinute: 10 })];
    const go = (number: number, again: boolean) =>
      store.admit(admitAsk({ tag, requestId: ridOf(number), groups, inputTokens: 10, again }));
    const debt = async (bucket: string) => (await store.inspect(tag))?.buckets[bucket]?.debt;
    admitted(await go(1, false));
    assert.equal(causeOf(await go(2, false)), "tokens");
    assert.deepEqual([await debt("big:r"), await debt("big:t")], [120_000, 600_000]);
    assert.equal(causeOf(await go(2, true)), "tokens");
    assert.equal(await debt("big:r"), 120_000);
  });

  test("a clock that is set back adds no tokens, and one that jumps ahead at most a full bucket (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lclock", { funds: 10_000n });
    const groups = [terms({ requestsPerMinute: 2 })];
    let number = 0;
    const go = async () => causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(++number), groups })));
    assert.deepEqual([await go(), await go(), await go()], ["admitted", "admitted", "requests"]);
    setTime(nowMs() - 3_600_000);
    assert.equal(await go(), "requests");
    setTime(nowMs() + 3_600_000);
    assert.equal(await go(), "requests");
    setTime(nowMs() + 10 * DAY_MS);
    assert.deepEqual([await go(), await go(), await go()], ["admitted", "admitted", "requests"]);
  });

  test("expired holds are released, at most 16 with each call, and a late charge still counts once (invariant 9)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lsweep", { funds: 10_000n });
    const asks = Array.from({ length: 40 }, (_, i) => admitAsk({ tag, requestId: ridOf(i + 1) }));
    const permits = [];
    for (const request of asks) permits.push(admitted(await store.admit(request)));
    setTime(nowMs() + 60_000);
    const counts = [];
    for (let number = 100; number < 104; number++) {
      await store.admit(admitAsk({ tag, requestId: ridOf(number), holdTtlMs: DAY_MS }));
      counts.push((await store.inspect(tag))?.inFlight);
    }
    assert.deepEqual(counts, [25, 10, 3, 4]);
    const [first, permit] = [asks[0], permits[0]];
    assert.ok(first && permit);
    const charge = settleAsk(first, permit, { amount: 100n });
    assert.equal((await store.settle(charge)).outcome, "settled");
    assert.equal((await store.settle(charge)).outcome, "duplicate");
    const state = await store.inspect(tag);
    assert.ok(state);
    assert.equal(state.account.balance, 9_900n);
    assertIdentities(state);
  });

  test("a card is valid from its first millisecond to its last (invariant 12)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lcard", { group: "cards" });
    const card = {
      card: "day",
      plan: "pro",
      group: "cards",
      lastsMs: 1_000,
      quota: nanoUsd(1_000n),
      reference: "code",
    };
    await store.grant(tag, { ...card, id: "Lc1", afterPrevious: false });
    await store.grant(tag, { ...card, id: "Lc2", afterPrevious: true });
    let number = 0;
    const payer = async () => {
      const request = admitAsk({ tag, requestId: ridOf(++number), plans: ["pro"], groups: [cardTerms()] });
      const answer = await store.admit(request);
      return answer.outcome === "admitted" ? answer.entitlement : answer.cause;
    };
    assert.equal(await payer(), "Lc1");
    setTime(nowMs() + 999);
    assert.equal(await payer(), "Lc1");
    setTime(nowMs() + 1);
    assert.equal(await payer(), "Lc2");
    setTime(nowMs() + 1_000);
    assert.equal(await payer(), "no_entitlement");
    assert.deepEqual(
      (await store.inspect(tag))?.entitlements.map((e) => e.held),
      [200n, 100n],
    );
  });

  test("a settled mark lives through its last millisecond", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Llast");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const atMs = nowMs();
    const charge = settleAsk(request, admitted(await store.admit(request)), { amount: 5n });
    await store.settle(charge);
    const recorded = async () => (await store.settledAmounts(tag, [request.requestId]))[0];
    setTime(atMs + SETTLED_MARK_MS);
    assert.equal(await recorded(), 5n);
    assert.equal((await store.settle(charge)).outcome, "duplicate");
    setTime(atMs + SETTLED_MARK_MS + 1);
    assert.equal(await recorded(), undefined);
  });

  test("an ended card is listed until the first card that is given two days after its end", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Llinger", { group: "cards" });
    const card = {
      card: "day",
      plan: "pro",
      group: "cards",
      afterPrevious: false,
      quota: undefined,
      reference: "code",
    };
    const grant = (id: string, lastsMs: number) => store.grant(tag, { ...card, id, lastsMs });
    const listed = async () => (await store.listCards(tag, true))?.cards.map(({ id }) => id);
    const startMs = nowMs();
    await grant("Ll1", 1_000);
    await grant("Ll2", 1_001);
    setTime(startMs + 1_000 + ENTITLEMENT_LINGER_MS);
    assert.deepEqual(await listed(), ["Ll1", "Ll2"]);
    await grant("Ll3", 30 * DAY_MS);
    assert.deepEqual(await listed(), ["Ll2", "Ll3"]);
  });

  test("a code is valid up to the millisecond before its end", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lcode");
    const endMs = nowMs() + 1_000;
    const facts = {
      card: "day",
      plan: "pro",
      group: "cards",
      lastsMs: DAY_MS,
      starts: "at_redemption",
      quota: undefined,
    } as const;
    const codes = ["Lcode1", "Lcode2"].map((id) => ({ id, hash: codeHashOf(id) }));
    await store.createCodes({ ...facts, expiresAtMs: endMs }, codes);
    setTime(endMs - 1);
    assert.equal((await store.redeem({ hash: codeHashOf("Lcode1"), tag })).outcome, "redeemed");
    setTime(endMs);
    assert.equal((await store.redeem({ hash: codeHashOf("Lcode2"), tag })).outcome, "expired");
  });

  test("a charge older than 48 hours is stale, unless the store has it: then its mark, or its line, says so", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Lstale");
    const [early, late] = [1, 2].map((n) => admitAsk({ tag, requestId: ridOf(n) }));
    assert.ok(early && late);
    const permit = admitted(await store.admit(early));
    admitted(await store.admit(late));
    setTime(nowMs() + SETTLE_HORIZON_MS);
    const charge = settleAsk(early, permit, { amount: 5n });
    assert.equal((await store.settle(charge)).outcome, "settled");
    setTime(nowMs() + 1);
    assert.equal((await store.settle(settleAsk(late, permit, { amount: 5n }))).outcome, "stale");
    assert.equal((await store.settle(charge)).outcome, "duplicate");
    setTime(nowMs() + SETTLED_MARK_MS);
    assert.equal((await store.settle(charge)).outcome, "duplicate");
    assert.equal((await store.settle({ ...charge, amount: nanoUsd(6n) })).outcome, "mismatch");
    assert.equal((await store.getAccount(tag))?.balance, 995n);
  });
}
