/** Limits of keys and accounts in addition to those of their groups: budgets, rates, models, addresses. */
import assert from "node:assert/strict";
import test from "node:test";
import type { AdmitAsk, GroupTerms } from "../../../src/store/admission.ts";
import { addressBits } from "../../../src/store/limits/address-bits.ts";
import { type LimitSet, limitsText } from "../../../src/store/limits/limits.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import {
  admitAsk,
  admitted,
  cardTerms,
  causeOf,
  DAY_MS,
  hashOf,
  makeAccount,
  ridOf,
  settleAsk,
  terms,
} from "./asks.ts";
import type { Ask } from "./contract.ts";
import { assertIdentities } from "./contract-settle.ts";

const PARALLEL = 200;
const usd = (budgets: Record<string, bigint>): LimitSet => ({
  budgets: Object.fromEntries(Object.entries(budgets).map(([span, amount]) => [span, nanoUsd(amount)])),
});

/** Creates an account with a key that has limits. */
async function limited(ask: Ask, name: string, limits: LimitSet, funds = 100_000n) {
  const { store } = ask();
  const tag = await makeAccount(store, name, { funds });
  const id = `key_${name}`;
  const set = (changed: LimitSet, which: "limits" | "caps" = "limits") =>
    store.changeKey(tag, id, { [which]: limitsText(changed) });
  await set(limits);
  const request = (n: number, changes: Partial<AdmitAsk> = {}) => admitAsk({ tag, requestId: ridOf(n), ...changes });
  return {
    store,
    tag,
    id,
    set,
    request,
    admit: (n: number, changes?: Partial<AdmitAsk>) => store.admit(request(n, changes)),
  };
}

const counts = (causes: readonly string[]) =>
  Object.fromEntries(
    Map.groupBy(causes, (cause) => cause)
      .entries()
      .map(([cause, of]) => [cause, of.length]),
  );

export function budgetTests(ask: Ask): void {
  const busy: Partial<GroupTerms> = { concurrency: 1_000 };
  for (const span of ["day", "week", "month", "total"]) {
    test(`of ${PARALLEL} requests at once on a key's budget for three, three are admitted: ${span}`, async () => {
      const { store, tag, id, admit, request } = await limited(ask, `Bk${span}`, usd({ [span]: 309n }));
      const groups = [terms(busy)];
      const answers = await Promise.all(Array.from({ length: PARALLEL }, (_, i) => admit(i + 1, { groups })));
      assert.deepEqual(counts(answers.map(causeOf)), { admitted: 3, key_budget: PARALLEL - 3 });
      const refused = answers.find((answer) => answer.outcome === "refused");
      assert.ok(refused?.outcome === "refused" && refused.span === span);
      assert.equal(refused.resetsAtMs === undefined, span === "total");
      assert.deepEqual([refused.budget, refused.keyId], [309n, id]);
      // Each costs more than its hold: the balance pays all of it, and the budget is used up.
      const winners = answers.flatMap((answer, i) => (answer.outcome === "admitted" ? [i] : []));
      const settled = await Promise.all(
        winners.map((i) => {
          const permit = admitted(answers[i] as (typeof answers)[0]);
          return store.settle(settleAsk(request(i + 1, { groups }), permit, { amount: 150n, counted: permit.counted }));
        }),
      );
      const charged = settled.map((answer) => (answer.outcome === "settled" ? answer.charged : 0n));
      assert.deepEqual(charged, [150n, 150n, 150n]);
      const state = await store.inspect(tag);
      assert.ok(state);
      assertIdentities(state);
      const field = `${span.slice(0, 1)}/${id}`;
      const { spent, held } = state.budgets[field]?.now ?? {};
      assert.deepEqual([spent, held, state.account.balance], [450n, 0n, 100_000n - 450n]);
      assert.deepEqual((await store.listKeys(tag))[0]?.budgets.get(field), state.budgets[field]);
      assert.deepEqual((await store.readKey(tag, hashOf("key")))?.budgets.get(field), state.budgets[field]);
      assert.equal(causeOf(await admit(PARALLEL + 1, { groups })), "key_budget");
    });
  }

  for (const span of ["day", "month"]) {
    test(`of ${PARALLEL} requests at once by two keys on their account's budget for three, three are admitted: ${span}`, async () => {
      const { store } = ask();
      const tag = await makeAccount(store, `Ba${span}`, { funds: 100_000n });
      await store.createKey(tag, { id: `key_Ba${span}2`, hash: hashOf("two"), group: "big" });
      await store.setAccountLimits(tag, limitsText(usd({ [span]: 309n })));
      const groups = [terms(busy)];
      const keyHash = (i: number) => hashOf(i % 2 === 0 ? "key" : "two");
      const asks = Array.from({ length: PARALLEL }, (_, i) =>
        admitAsk({ tag, requestId: ridOf(i + 1), groups, keyHash: keyHash(i) }),
      );
      const answers = await Promise.all(asks.map((one) => store.admit(one)));
      assert.deepEqual(counts(answers.map(causeOf)), { admitted: 3, account_budget: PARALLEL - 3 });
      const field = span.slice(0, 1).toUpperCase();
      assert.equal((await store.readAccountBudgets(tag))?.get(field)?.now.held, 300n);
      assert.equal(await store.readAccountBudgets("Bnobody" as typeof tag), undefined);
    });
  }

  test(`of ${PARALLEL} requests at once as many are admitted as a key's own rates and concurrency allow`, async () => {
    const groups = [terms({ ...busy, holdFull: 0n, holdMin: 0n, requestsPerMinute: 150, tokensPerMinute: 1_000_000 })];
    const run = async (name: string, limits: LimitSet) => {
      const { admit } = await limited(ask, name, limits);
      const all = Array.from({ length: PARALLEL }, (_, i) => admit(i + 1, { groups, inputTokens: 10 }));
      const answers = await Promise.all(all);
      return { found: counts(answers.map(causeOf)), refused: answers.find(({ outcome }) => outcome === "refused") };
    };
    const requests = await run("BrReq", { requestsPerMinute: 7 });
    assert.deepEqual(requests.found, { admitted: 7, requests: PARALLEL - 7 });
    const { refused } = requests;
    assert.ok(refused?.outcome === "refused");
    assert.deepEqual([refused.limitOfKey, refused.limits.requests?.limit], [7, 7]);
    const tokens = await run("BrTok", { tokensPerMinute: 95 });
    assert.equal(tokens.found.admitted, 9);
    const atOnce = await run("BrPar", { concurrency: 5 });
    assert.equal(atOnce.found.admitted, 5);
    assert.ok(atOnce.refused?.outcome === "refused" && atOnce.refused.limitOfKey === 5);
    // The group's own limit is reached first if it is stricter.
    const loose = await run("BrLoose", { requestsPerMinute: 180 });
    assert.deepEqual(loose.found, { admitted: 150, requests: 50 });
    assert.ok(loose.refused?.outcome === "refused" && loose.refused.limitOfKey === undefined);
  });

  test("the answer shows the key's limit when as much is left of the group's", async () => {
    const { store, tag, admit } = await limited(ask, "Btie", { requestsPerMinute: 5, tokensPerMinute: 500 });
    await store.createKey(tag, { id: "key_Btie2", hash: hashOf("two"), group: "big" });
    const groups = [terms({ ...busy, requestsPerMinute: 6, tokensPerMinute: 600 })];
    const told = async (n: number, key: string) => {
      const { limits } = admitted(await admit(n, { groups, keyHash: hashOf(key), inputTokens: 100 }));
      return [limits.requests?.limit, limits.requests?.remaining, limits.tokens?.limit, limits.tokens?.remaining];
    };
    assert.deepEqual(await told(1, "two"), [6, 5, 600, 500]);
    assert.deepEqual(await told(2, "key"), [5, 4, 500, 400]);
    assert.deepEqual(await told(3, "two"), [6, 3, 600, 300]);
    assert.deepEqual(await told(4, "key"), [6, 2, 600, 200]);
  });

  test("when the key's limit and the group's are both used up, the key's refuses the request", async () => {
    const { admit } = await limited(ask, "Bboth", { requestsPerMinute: 1, tokensPerMinute: 100 });
    const refusedBy = async (n: number, changes: Partial<AdmitAsk>) => {
      const answer = await admit(n, changes);
      assert.ok(answer.outcome === "refused");
      return [answer.cause, answer.limitOfKey];
    };
    const groups = [terms({ requestsPerMinute: 1, tokensPerMinute: 100 })];
    admitted(await admit(1, { groups, inputTokens: 100 }));
    assert.deepEqual(await refusedBy(2, { groups, inputTokens: 100 }), ["requests", 1]);
    assert.deepEqual(await refusedBy(3, { groups, inputTokens: 100, again: true }), ["tokens", 100]);
  });

  test("a refusal by a key's limit takes nothing from the group's, and the operator's caps count beside the owner's limits", async () => {
    const { store, tag, id, admit, set, request } = await limited(ask, "Bcaps", {
      requestsPerMinute: 5,
      concurrency: 9,
    });
    await set({ requestsPerMinute: 2, concurrency: 1 }, "caps");
    const groups = [terms({ requestsPerMinute: 100 })];
    const first = admitted(await admit(1, { groups }));
    assert.equal(first.limits.requests?.limit, 2);
    const refused = await admit(2, { groups });
    assert.ok(refused.outcome === "refused" && refused.cause === "concurrency" && refused.limitOfKey === 1);
    const used = async () => (await store.readLimits(tag, "big"))?.requests?.debt;
    const before = await used();
    assert.equal(causeOf(await admit(3, { groups })), "requests");
    assert.ok(((await used()) ?? 0) <= (before ?? 0), "the group's bucket");
    assert.equal((await store.readLimits(tag, `*/${id}`))?.inFlight, 1);
    await store.settle(settleAsk(request(1, { groups }), first, { amount: 1n, counted: first.counted }));
    assert.equal((await store.readLimits(tag, `*/${id}`))?.inFlight, 0);
    await set({}, "caps");
    assert.equal(causeOf(await admit(4, { groups })), "admitted");
  });

  test("a key may use only models and addresses that are in both the owner's limits and the operator's caps", async () => {
    const { admit, set, store, tag } = await limited(ask, "Blists", {
      models: ["big-*", "small-1"],
      addresses: ["10.0.0.0/8", "2001:db8::/32"],
    });
    let n = 0;
    const go = async (model: string, from: string) => causeOf(await admit(++n, { model, address: addressBits(from) }));
    assert.equal(await go("big-1", "10.1.2.3"), "admitted");
    assert.equal(await go("big-1", "::ffff:10.1.2.3"), "admitted");
    assert.equal(await go("small-1", "2001:db8:ffff::1"), "admitted");
    assert.equal(await go("small-10", "10.1.2.3"), "model_not_allowed");
    assert.equal(await go("big", "10.1.2.3"), "model_not_allowed");
    for (const address of ["11.0.0.1", "2001:db9::1", "", "::10.1.2.3"]) {
      assert.equal(await go("big-1", address), "address_not_allowed", address);
    }
    await set({ models: ["big-2"], addresses: ["10.1.0.0/16"] }, "caps");
    assert.equal(await go("big-1", "10.1.2.3"), "model_not_allowed");
    assert.equal(await go("big-2", "10.2.2.3"), "address_not_allowed");
    assert.equal(await go("big-2", "10.1.2.3"), "admitted");
    await set({ addresses: ["::/0"] });
    await set({}, "caps");
    assert.equal(await go("big-1", "192.0.2.1"), "admitted");
    assert.equal(await go("big-1", ""), "address_not_allowed", "an unknown address is in no block");
    const before = await store.inspect(tag);
    assert.equal(before?.inFlight, 5, "a refused request holds nothing");
  });

  test("a hold and its extensions stay within a budget, and a changed budget applies from the next step on", async () => {
    const { store, tag, admit, set, request } = await limited(ask, "Bgrow", usd({ day: 250n }));
    const first = admitted(await admit(1));
    assert.deepEqual([first.hold, first.free], [100n, 150n]);
    const raise = async (n: number, target: bigint) => {
      const answer = await store.extend({ tag, requestId: ridOf(n), target: nanoUsd(target) });
      return answer.outcome === "held" ? answer.hold : answer.outcome;
    };
    assert.equal(await raise(1, 180n), 180n);
    const clamped = admitted(await admit(2));
    assert.deepEqual([clamped.hold, clamped.free], [70n, 0n]);
    assert.equal(await raise(1, 300n), 180n);
    assert.equal(causeOf(await admit(3)), "key_budget");
    await set(usd({ day: 300n }));
    assert.equal(await raise(1, 1_000n), 230n);
    // Lowered below what is held: the request keeps its hold.
    await set(usd({ day: 200n }));
    assert.equal(await raise(1, 1_000n), 230n);
    const settle = async (n: number, permit: typeof first, amount: bigint) => {
      const answer = await store.settle(settleAsk(request(n), permit, { amount, counted: permit.counted }));
      return answer.outcome === "settled" ? [answer.charged, answer.absorbed] : answer.outcome;
    };
    await set(usd({ day: 200n }), "caps");
    assert.deepEqual(await settle(1, first, 260n), [230n, 30n], "the operator's cap limits the charge as well");
    await set({});
    await set({}, "caps");
    assert.deepEqual(await settle(2, clamped, 95n), [95n, 0n], "without a budget there is no limit");
    const state = await store.inspect(tag);
    assert.deepEqual(state?.budgets["d/key_Bgrow"]?.now.spent, 325n);
    assert.equal(state?.budgets["d/key_Bgrow"]?.now.held, 0n);
  });

  test("extensions and charges are limited by the operator's cap and by the account's budget as well", async () => {
    const { store, tag, id, admit, set, request } = await limited(ask, "Bcapped", usd({ day: 400n }));
    const raise = async (n: number) => {
      const answer = await store.extend({ tag, requestId: ridOf(n), target: nanoUsd(350n) });
      return answer.outcome === "held" ? answer.hold : answer.outcome;
    };
    const charge = async (n: number, permit: ReturnType<typeof admitted>) => {
      const answer = await store.settle(settleAsk(request(n), permit, { amount: 390n, counted: permit.counted }));
      return answer.outcome === "settled" ? [answer.charged, answer.absorbed] : answer.outcome;
    };
    await set(usd({ day: 150n }), "caps");
    const capped = admitted(await admit(1));
    assert.deepEqual([capped.hold, capped.free], [100n, 50n]);
    assert.equal(await raise(1), 150n);
    assert.deepEqual(await charge(1, capped), [150n, 240n]);
    await set({}, "caps");
    await store.setAccountLimits(tag, limitsText(usd({ month: 120n })));
    const bounded = admitted(await admit(2));
    assert.deepEqual([bounded.hold, bounded.free], [100n, 20n]);
    assert.equal(await raise(2), 120n);
    assert.deepEqual(await charge(2, bounded), [120n, 270n]);
    const state = await store.inspect(tag);
    assert.deepEqual([state?.budgets[`d/${id}`]?.now.spent, state?.budgets.M?.now.spent], [270n, 120n]);
  });

  test("a charge above its hold takes the whole rest of a cap, to which its own hold belongs", async () => {
    const { store, tag, set, admit, request } = await limited(ask, "Bcapown", {});
    await set(usd({ month: 250n }), "caps");
    const permit = admitted(await admit(1));
    admitted(await admit(2));
    assert.equal(permit.hold, 100n);
    const answer = await store.settle(settleAsk(request(1), permit, { amount: 200n }));
    assert.deepEqual(answer.outcome === "settled" && [answer.charged, answer.absorbed], [150n, 50n]);
    assert.equal((await store.inspect(tag))?.account.balance, 99_850n);
  });

  test("a hold of nothing that is raised counts in the budget from then on", async () => {
    const { store, tag, admit } = await limited(ask, "Braised", usd({ day: 150n }));
    const groups = [terms({ holdFull: 0n, holdMin: 0n })];
    assert.equal(admitted(await admit(1, { groups })).hold, 0n);
    const raised = await store.extend({ tag, requestId: ridOf(1), target: nanoUsd(100n) });
    assert.deepEqual(raised, { outcome: "held", hold: 100n });
    assert.equal(admitted(await admit(2)).hold, 50n);
  });

  test("charges above the hold count in full even if the owner raises the budget before each of them", async () => {
    const { store, tag, id, set, admit, request } = await limited(ask, "Bown", usd({ total: 100n }), 1_000n);
    for (const n of [1, 2, 3, 4]) {
      await set(usd({ total: BigInt(n - 1) * 250n + 100n }));
      const permit = admitted(await admit(n));
      const answer = await store.settle(settleAsk(request(n), permit, { amount: 250n, counted: permit.counted }));
      assert.ok(answer.outcome === "settled" && answer.charged === 250n && answer.absorbed === 0n);
      assert.equal(causeOf(await admit(10 + n)), n < 4 ? "key_budget" : "insufficient_balance");
    }
    const state = await store.inspect(tag);
    assert.ok(state);
    assertIdentities(state);
    assert.deepEqual([state.account.balance, state.budgets[`t/${id}`]?.now.spent], [0n, 1_000n]);
    // Four such charges count as three.
    assert.equal(
      state.buckets.over && Math.ceil(state.buckets.over.debt / DAY_MS),
      3 * 7,
      "charges above the owner's budget",
    );
  });

  test("a key's tokens per minute count actual use, and an unused request gives its tokens back", async () => {
    const { store, admit, request } = await limited(ask, "Btoken", { tokensPerMinute: 100_000 });
    const tokens = async (n: number, inputTokens: number) => admit(n, { inputTokens });
    const first = admitted(await tokens(1, 60_000));
    const used = { tokensTaken: 60_000, tokensUsed: 90_000, counted: first.counted };
    await store.settle(settleAsk(request(1), first, { amount: 1n, ...used }));
    assert.equal(causeOf(await tokens(2, 40_000)), "tokens");
    for (let n = 3; n < 9; n++) {
      const permit = admitted(await tokens(n, 9_000));
      const none = { tokensTaken: 9_000, tokensUsed: 0, counted: permit.counted };
      await store.settle(settleAsk(request(n), permit, { voided: true, ...none }));
    }
    // The use of a request that its client abandoned counts, whoever pays.
    const wasted = admitted(await tokens(9, 9_000));
    const left = { tokensTaken: 9_000, tokensUsed: 95_000, counted: wasted.counted };
    await store.settle(settleAsk(request(9), wasted, { voided: true, ...left }));
    assert.equal(causeOf(await tokens(10, 9_000)), "tokens");
  });

  test("a new token limit of a key counts requests that start after it, and no running ones", async () => {
    const { store, tag, id, admit, request, set } = await limited(ask, "Bnew", usd({ day: 1_000n }));
    const first = admitted(await admit(1, { inputTokens: 100 }));
    await set({ ...usd({ day: 1_000n }), tokensPerMinute: 1_000 });
    const used = { tokensTaken: 100, tokensUsed: 900, counted: first.counted };
    await store.settle(settleAsk(request(1), first, { amount: 1n, ...used }));
    assert.equal((await store.readLimits(tag, `*/${id}`))?.tokens, undefined);
    assert.equal(admitted(await admit(2, { inputTokens: 100 })).limits.tokens?.remaining, 900);
  });

  test("a card's payments count in a budget, and requests on a card without a quota do not", async () => {
    const { store, tag, admit, request, set } = await limited(ask, "Bcard", usd({ month: 120n }));
    await store.changeKey(tag, "key_Bcard", { group: "cards" });
    const card = {
      card: "day",
      plan: "free",
      group: "cards",
      lastsMs: DAY_MS,
      afterPrevious: false,
      reference: "code",
    };
    await store.grant(tag, { ...card, id: "Bc1", quota: nanoUsd(1_000n) });
    const groups = [cardTerms()];
    const first = admitted(await admit(1, { groups }));
    assert.deepEqual([first.entitlement, first.hold, first.free], ["Bc1", 100n, 20n]);
    await store.settle(settleAsk(request(1, { groups }), first, { amount: 90n, counted: first.counted }));
    assert.equal(admitted(await admit(2, { groups })).hold, 30n);
    assert.equal(causeOf(await admit(3, { groups })), "key_budget");
    await store.grant(tag, { ...card, id: "Bc0", lastsMs: 1_000, quota: undefined });
    const free = admitted(await admit(4, { groups }));
    assert.deepEqual([free.unmetered, free.hold, free.counted], [true, 0n, ""]);
    await set({});
  });

  test("in a card group with a fallback the balance pays if no card does", async () => {
    const { store, tag, admit, request } = await limited(ask, "Bfall", {}, 500n);
    await store.changeKey(tag, "key_Bfall", { group: "cards" });
    const groups = [cardTerms({ fallback: true })];
    assert.equal(causeOf(await admit(1, { groups: [cardTerms()] })), "no_entitlement");
    assert.equal(admitted(await admit(2, { groups })).entitlement, undefined);
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false, reference: "code" };
    await store.grant(tag, { ...card, id: "Bf1", plan: "free", quota: nanoUsd(105n) });
    const byCard = admitted(await admit(3, { groups }));
    assert.deepEqual([byCard.entitlement, byCard.hold], ["Bf1", 100n]);
    assert.equal(causeOf(await admit(4, { groups: [cardTerms()] })), "quota_used");
    const byBalance = admitted(await admit(5, { groups }));
    assert.deepEqual([byBalance.entitlement, byBalance.unmetered, byBalance.hold], [undefined, false, 100n]);
    const ask5 = settleAsk(request(5, { groups }), byBalance, { amount: 60n, kind: "pay_per_use" });
    assert.equal((await store.settle(ask5)).outcome, "settled");
    assert.equal((await store.getAccount(tag))?.balance, 440n);
    // A model outside the account's plans is still refused as such, and so is an empty balance.
    assert.equal(causeOf(await admit(6, { groups, plans: ["none"] })), "not_in_plan");
    assert.equal(
      causeOf(await admit(7, { groups: [cardTerms({ fallback: true, holdMin: 100n, holdFull: 100n })] })),
      "admitted",
    );
    for (let n = 8; n < 12; n++) await admit(n, { groups });
    assert.equal(causeOf(await admit(12, { groups })), "insufficient_balance");
  });

  test("after a budget is lowered below what was spent, only requests without cost pass", async () => {
    const { store, tag, set, request, admit } = await limited(ask, "Blow", usd({ total: 200n }));
    await store.setAccountLimits(tag, limitsText(usd({ day: 200n })));
    const answer = admitted(await admit(1));
    const settled = await store.settle(settleAsk(request(1), answer, { amount: 90n, counted: answer.counted }));
    assert.equal(settled.outcome, "settled");
    const groups = [terms({ holdMin: 0n, holdFull: 0n })];
    await set(usd({ total: 50n }));
    assert.equal(admitted(await admit(2, { groups })).hold, 0n);
    assert.equal(causeOf(await admit(3)), "key_budget");
    await set({});
    await store.setAccountLimits(tag, limitsText(usd({ day: 50n })));
    assert.equal(admitted(await admit(4, { groups })).hold, 0n);
    assert.equal(causeOf(await admit(5)), "account_budget");
    // It may cost something after all: then what is left is held.
    const dearer = admitted(await admit(6, { groups: [terms({ holdMin: 0n })] }));
    assert.deepEqual([dearer.hold, dearer.free], [0n, 0n]);
  });

  test("repeated limits count only with a higher revision, and are read as they were written", async () => {
    const { store, tag, id, set } = await limited(ask, "Bagain", { models: ["a*"], addresses: ["10.0.0.0/8"] });
    const written = (await set(usd({ day: 5n, total: 9n })))?.revision ?? 0;
    const read = async () => (await store.readKey(tag, hashOf("key")))?.key.limits;
    const now = limitsText(usd({ day: 5n, total: 9n }));
    assert.equal(await read(), now);
    await store.changeKey(tag, id, { limits: "" }, written);
    assert.equal(await read(), now);
    await store.changeKey(tag, id, { name: "kept" });
    assert.equal(await read(), now);
    await store.changeKey(tag, id, { limits: "" }, written + 1_000_000_000);
    assert.equal(await read(), "");
    const first = await store.setAccountLimits(tag, now);
    assert.equal(first?.limits, now);
    assert.equal((await store.setAccountLimits(tag, "", first?.limitsRevision))?.limits, now);
    assert.equal((await store.setAccountLimits(tag, ""))?.limits, "");
    assert.equal(await store.setAccountLimits("Bnobody" as typeof tag, ""), undefined);
    for (const bad of ["{}", '{"day":"-1"}', '{"rpm":"0"}', '{"day": "1"}', "x"]) {
      await assert.rejects(store.changeKey(tag, id, { limits: bad }), bad);
      await assert.rejects(store.setAccountLimits(tag, bad), bad);
    }
  });
}

export function budgetTimeTests(ask: Ask): void {
  test("a budget restarts with its UTC day, Monday or month, and requests of the previous period count there", async () => {
    const { nowMs, setTime } = ask();
    // The next Monday that is not the first of a month, so that only a day and a week start.
    let monday = Math.ceil((nowMs() / DAY_MS - 4) / 7) * 7 * DAY_MS + 4 * DAY_MS;
    while (new Date(monday).getUTCDate() === 1) monday += 7 * DAY_MS;
    setTime(monday - 1);
    const { store, tag, admit, request, set } = await limited(
      ask,
      "Btime",
      usd({ day: 100n, week: 150n, month: 220n }),
    );
    const long = { holdTtlMs: 2 * DAY_MS };
    const sunday = admitted(await admit(1, long));
    const refused = await admit(2, long);
    assert.ok(refused.outcome === "refused" && refused.span === "day");
    assert.equal(refused.resetsAtMs, monday);
    setTime(monday);
    // The day and the week are new, and the month has 120 left.
    const first = admitted(await admit(3, long));
    assert.equal(first.hold, 100n);
    // Sunday's request costs more than its hold, and the operator's cap leaves nothing of its day.
    await set(usd({ day: 100n }), "caps");
    const charge = settleAsk(request(1, long), sunday, { amount: 140n, counted: sunday.counted });
    const answer = await store.settle(charge);
    assert.ok(answer.outcome === "settled" && answer.charged === 100n && answer.absorbed === 40n);
    setTime(monday + DAY_MS);
    const last = await admit(4, long);
    assert.ok(last.outcome === "admitted" && last.hold === 20n, "limited by the month");
    const none = await admit(5, long);
    assert.ok(none.outcome === "refused" && none.span === "month");
    const { resetsAtMs = 0 } = none;
    assert.equal(new Date(resetsAtMs).getUTCDate(), 1);
    assert.ok(resetsAtMs > monday && resetsAtMs - monday <= 31 * DAY_MS);
    setTime(resetsAtMs);
    assert.equal(admitted(await admit(6)).hold, 100n);
    const counts = (await store.inspect(tag))?.budgets;
    assert.equal(counts?.["m/key_Btime"]?.before.spent, 100n);
  });

  test("holds of two days that expire together are each given back to their own day", async () => {
    const { nowMs, setTime } = ask();
    const midnight = Math.ceil(nowMs() / DAY_MS + 1) * DAY_MS;
    setTime(midnight - 1_000);
    const { store, admit, tag } = await limited(ask, "Bnight", usd({ day: 160n }));
    const short = { holdTtlMs: 10_000 };
    for (const hold of [100n, 60n]) assert.equal(admitted(await admit(Number(hold), short)).hold, hold);
    setTime(midnight + 1_000);
    assert.equal(admitted(await admit(3, short)).hold, 100n);
    setTime(midnight + 20_000);
    assert.equal(admitted(await admit(4)).hold, 100n);
    const { before, now } = (await store.inspect(tag))?.budgets["d/key_Bnight"] ?? {};
    assert.deepEqual([before?.held, now?.held], [0n, 100n]);
  });

  test("an expired hold is given back to its budgets, and a later charge counts in them", async () => {
    const { nowMs, setTime } = ask();
    const { store, tag, admit, request, set } = await limited(ask, "Bswept", {
      ...usd({ total: 150n }),
      concurrency: 2,
    });
    await set(usd({ total: 150n }), "caps");
    const late = admitted(await admit(1, { holdTtlMs: 1_000 }));
    assert.equal(admitted(await admit(2, { holdTtlMs: 1_000 })).hold, 50n);
    assert.equal(causeOf(await admit(3)), "key_budget");
    setTime(nowMs() + 1_001);
    assert.equal(admitted(await admit(4)).hold, 100n);
    const answer = await store.settle(settleAsk(request(1), late, { amount: 90n, counted: late.counted }));
    assert.ok(answer.outcome === "settled" && answer.charged === 50n && answer.absorbed === 40n);
    const { now } = (await store.inspect(tag))?.budgets["t/key_Bswept"] ?? {};
    assert.deepEqual([now?.spent, now?.held], [50n, 100n]);
    assert.deepEqual((await store.inspect(tag))?.inFlightByKey, { key_Bswept: 1 });
  });
}
