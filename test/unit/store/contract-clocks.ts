/** A clock that was ahead for days, or for a year, and is right again: what was written meanwhile does no lasting harm. */
import assert from "node:assert/strict";
import test from "node:test";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { limitsText } from "../../../src/store/limits/limits.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
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
  terms,
} from "./asks.ts";
import type { Ask } from "./contract.ts";
import { assertIdentities } from "./contract-settle.ts";

export function clockTests(ask: Ask): void {
  test("a card that was hidden while the clock was ahead runs again with the next request (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpcard", { group: "cards" });
    const card = { card: "day", plan: "pro", group: "cards", quota: nanoUsd(1_000n), reference: "code" };
    const grant = (id: string, days: number) =>
      store.grant(tag, { ...card, id, lastsMs: days * DAY_MS, afterPrevious: false });
    const listed = async (ended = false) => (await store.listCards(tag, ended))?.cards.map(({ id }) => id);
    let number = 0;
    const payer = async () => {
      const request = admitAsk({ tag, requestId: ridOf(++number), plans: ["pro"], groups: [cardTerms()] });
      const answer = await store.admit(request);
      return answer.outcome === "admitted" ? answer.entitlement : answer.cause;
    };
    await grant("Kc1", 1);
    await grant("Kc2", 2);
    const startMs = nowMs();
    setTime(startMs + 365 * DAY_MS);
    // The second grant finds a list from which the first has already dropped cards.
    await grant("Kc3", 1);
    await grant("Kc4", 400);
    assert.deepEqual(await listed(true), ["Kc3", "Kc4"]);
    setTime(startMs + 1);
    // A read does not look for them, because it could not remember what it has found.
    assert.deepEqual(await listed(), ["Kc3", "Kc4"]);
    const seen = async () => (await store.readKey(tag, hashOf("key")))?.entitlements.map(({ id }) => id);
    assert.deepEqual(await seen(), ["Kc3", "Kc4"]);
    const checks = async () => {
      const { findings } = await auditToEnd(auditAccount(store, { name: "Jumpcard", tag }));
      return findings.map(({ check }) => check);
    };
    assert.deepEqual(await checks(), ["card_unlisted", "card_unlisted"]);
    assert.equal(await payer(), "Kc1");
    assert.deepEqual(await checks(), []);
    assert.deepEqual(await listed(), ["Kc1", "Kc2", "Kc3", "Kc4"]);
    assert.deepEqual(await seen(), ["Kc1", "Kc2", "Kc3", "Kc4"]);
    setTime(startMs + DAY_MS);
    assert.equal(await payer(), "Kc2");
    // Listed again is listed like any other: they stay until the first card that is given long after their end.
    setTime(startMs + 3 * DAY_MS);
    assert.deepEqual(await listed(true), ["Kc1", "Kc2", "Kc3", "Kc4"]);
    setTime(startMs + 5 * DAY_MS);
    await grant("Kc5", 1);
    assert.deepEqual(await listed(true), ["Kc5", "Kc3", "Kc4"]);
    assert.equal(await payer(), "Kc5");
  });

  test("a card that follows one that was hidden while the clock was ahead begins at its end (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpafter", { group: "cards" });
    const card = { card: "day", plan: "pro", group: "cards", quota: nanoUsd(1_000n), reference: "code" };
    const startMs = nowMs();
    await store.grant(tag, { ...card, id: "Ka1", lastsMs: 30 * DAY_MS, afterPrevious: false });
    setTime(startMs + 60 * DAY_MS);
    await store.grant(tag, { ...card, group: "more", id: "Ka2", lastsMs: DAY_MS, afterPrevious: false });
    setTime(startMs + DAY_MS);
    const next = await store.grant(tag, { ...card, id: "Ka3", lastsMs: DAY_MS, afterPrevious: true });
    assert.equal(next?.fromMs, startMs + 30 * DAY_MS);
    const cards = (await store.listCards(tag))?.cards.map(({ id }) => id);
    assert.deepEqual(cards, ["Ka1", "Ka3", "Ka2"]);
  });

  test("limits that were used up while the clock was a year ahead are full when it is back (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumprate", { funds: 10_000n });
    const groups = [terms({ requestsPerMinute: 2, tokensPerMinute: 20 })];
    let number = 0;
    const go = () => store.admit(admitAsk({ tag, requestId: ridOf(++number), groups, inputTokens: 10 }));
    const startMs = nowMs();
    setTime(startMs + 365 * DAY_MS);
    assert.deepEqual(
      [causeOf(await go()), causeOf(await go()), causeOf(await go())],
      ["admitted", "admitted", "requests"],
    );
    setTime(startMs);
    assert.deepEqual([causeOf(await go()), causeOf(await go())], ["admitted", "admitted"]);
    const refused = await go();
    assert.ok(refused.outcome === "refused");
    assert.deepEqual([refused.cause, refused.retryAfterMs], ["requests", 30_000]);
  });

  test("a limit of a clock that goes back by an hour waits for that hour (row E1, invariant 14)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumphour", { funds: 10_000n });
    const groups = [terms({ requestsPerMinute: 1 })];
    let number = 0;
    const go = async () => {
      const answer = await store.admit(admitAsk({ tag, requestId: ridOf(++number), groups }));
      return answer.outcome === "refused" ? answer.retryAfterMs : "admitted";
    };
    const startMs = nowMs();
    assert.equal(await go(), "admitted");
    setTime(startMs - 3_600_000);
    assert.equal(await go(), 3_660_000);
    setTime(startMs - 3_600_001);
    assert.equal(await go(), "admitted");
    setTime(startMs + DAY_MS);
  });

  test("an allowance that was used up while the clock was a year ahead is full when it is back (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpleft", { funds: 10_000n });
    let number = 0;
    const leave = async () => {
      const request = admitAsk({ tag, requestId: ridOf(++number) });
      const permit = admitted(await store.admit(request));
      const left = { voided: true, absorbed: 40n, absorbedCause: "client_gone", leftUnpaid: leftUnpaid(40n, 60n) };
      const answer = await store.settle(settleAsk(request, permit, { ...left, upstream: "east" }));
      return answer.outcome === "settled" ? answer.charged : answer.outcome;
    };
    const startMs = nowMs();
    setTime(startMs + 365 * DAY_MS);
    assert.deepEqual([await leave(), await leave()], [0n, 60n]);
    setTime(startMs);
    assert.deepEqual([await leave(), await leave()], [0n, 60n]);
    setTime(startMs + DAY_MS);
    assert.equal(await leave(), 0n);
  });

  test("a budget that was used while the clock was ahead begins again in the present period when it is back (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpbudget", { funds: 10_000n });
    const budgets = { day: nanoUsd(250n), month: nanoUsd(600n) };
    await store.changeKey(tag, "key_Jumpbudget", { limits: limitsText({ budgets }) });
    const startMs = Math.floor(nowMs() / DAY_MS) * DAY_MS;
    let number = 0;
    const go = () => store.admit(admitAsk({ tag, requestId: ridOf(++number), holdTtlMs: 800 * DAY_MS }));
    /** Sends requests until one is refused. @returns what they hold, and when the budget begins again. */
    const useUp = async () => {
      for (let held = 0n; ; ) {
        const answer = await go();
        if (answer.outcome === "refused") return [held, answer.cause, answer.resetsAtMs];
        held += answer.hold;
      }
    };
    const dayEnds = (ms: number) => (Math.floor(ms / DAY_MS) + 1) * DAY_MS;
    setTime(startMs);
    const first = admitAsk({ tag, requestId: ridOf(1_000) });
    await store.settle(settleAsk(first, admitted(await store.admit(first)), { amount: 50n }));
    const aheadMs = startMs + 400 * DAY_MS;
    setTime(aheadMs);
    const ofThen = admitAsk({ tag, requestId: ridOf(1_001), holdTtlMs: 800 * DAY_MS });
    const permit = admitted(await store.admit(ofThen));
    const charged = admitAsk({ tag, requestId: ridOf(1_002), holdTtlMs: 800 * DAY_MS });
    const otherPermit = admitted(await store.admit(charged));
    assert.deepEqual(await useUp(), [50n, "key_budget", dayEnds(aheadMs)]);
    setTime(startMs + 1);
    // What was spent in the present period before still counts.
    assert.deepEqual(await useUp(), [200n, "key_budget", dayEnds(startMs)]);
    // A request of that time is counted there, and changes nothing in the present period.
    await store.settle(settleAsk(ofThen, permit, { voided: true }));
    assert.deepEqual(await useUp(), [0n, "key_budget", dayEnds(startMs)]);
    const figures = async () => (await store.inspect(tag))?.budgets["d/key_Jumpbudget"];
    const [today, then] = [startMs / DAY_MS, aheadMs / DAY_MS];
    assert.deepEqual(await figures(), {
      now: { period: today, spent: 50n, held: 200n },
      before: { period: then, spent: 0n, held: 150n },
    });
    // The clock is ahead again for a moment: nothing is lost.
    setTime(aheadMs + 1);
    assert.deepEqual(await useUp(), [100n, "key_budget", dayEnds(aheadMs)]);
    setTime(startMs + 2);
    assert.deepEqual(await useUp(), [0n, "key_budget", dayEnds(startMs)]);
    setTime(dayEnds(startMs));
    assert.deepEqual(await useUp(), [250n, "key_budget", dayEnds(dayEnds(startMs))]);
    // The figures of that time are gone by now. A charge of it opens them again, with nothing held.
    await store.settle(settleAsk(charged, otherPermit, { amount: 30n }));
    assert.deepEqual(await figures(), {
      now: { period: then, spent: 30n, held: 0n },
      before: { period: today + 1, spent: 0n, held: 250n },
    });
    assert.deepEqual(await useUp(), [0n, "key_budget", dayEnds(dayEnds(startMs))]);
  });

  test("a budget is not lost while the clock is years behind (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpbehind", { funds: 10_000n });
    await store.changeKey(tag, "key_Jumpbehind", { limits: limitsText({ budgets: { week: nanoUsd(100n) } }) });
    const startMs = nowMs();
    let number = 0;
    const go = async () => causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(++number) })));
    assert.deepEqual([await go(), await go()], ["admitted", "key_budget"]);
    setTime(startMs - 400 * DAY_MS);
    assert.deepEqual([await go(), await go()], ["admitted", "key_budget"]);
    setTime(startMs + 1);
    assert.equal(await go(), "key_budget");
    setTime(startMs + 7 * DAY_MS);
    assert.equal(await go(), "admitted");
  });

  test("a budget of a clock that goes back by a day is not opened again (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpday", { funds: 10_000n });
    await store.changeKey(tag, "key_Jumpday", { limits: limitsText({ budgets: { day: nanoUsd(100n) } }) });
    const startMs = nowMs();
    let number = 0;
    const go = async () => causeOf(await store.admit(admitAsk({ tag, requestId: ridOf(++number) })));
    assert.deepEqual([await go(), await go()], ["admitted", "key_budget"]);
    setTime(startMs + DAY_MS);
    assert.deepEqual([await go(), await go()], ["admitted", "key_budget"]);
    setTime(startMs);
    assert.equal(await go(), "key_budget");
  });

  test("a charge whose mark expired while the clock was ahead is found by its line, and not charged again (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpmark", { funds: 100_000n });
    let number = 0;
    const charge = async (changes: Parameters<typeof settleAsk>[2] = { amount: 50n }) => {
      const request = admitAsk({ tag, requestId: ridOf(++number) });
      const settlement = settleAsk(request, admitted(await store.admit(request)), changes);
      assert.equal((await store.settle(settlement)).outcome, "settled");
      return settlement;
    };
    const startMs = nowMs();
    for (let i = 0; i < 100; i++) await charge();
    setTime(startMs + 1_000);
    const charged = await charge({ amount: 250n });
    const left = await charge({ voided: true, absorbed: 40n, leftUnpaid: leftUnpaid(0n, 60n) });
    const voided = await charge({ voided: true, absorbed: 40n });
    const ids = [charged, left, voided].map(({ requestId }) => requestId);
    for (let i = 0; i < 100; i++) await charge();
    const funds = (await store.getAccount(tag))?.balance;
    setTime(startMs + 365 * DAY_MS);
    assert.deepEqual(await store.settledAmounts(tag, ids), [undefined, undefined, undefined]);
    // As many as delete all expired marks of the embedded store.
    const late = await makeAccount(store, "Jumplate", { funds: 100_000n });
    for (let i = 0; i < 48; i++) {
      const request = admitAsk({ tag: late, requestId: ridOf(++number) });
      await store.settle(settleAsk(request, admitted(await store.admit(request)), { amount: 1n }));
    }
    setTime(startMs + 2_000);
    assert.deepEqual(await store.settledAmounts(tag, ids), [undefined, undefined, undefined]);
    const other = { ...charged, amount: nanoUsd(251n) };
    assert.deepEqual(await store.settle(other), { outcome: "mismatch", recorded: 250n });
    for (const one of [charged, left, voided]) assert.equal((await store.settle(one)).outcome, "duplicate");
    assert.deepEqual(await store.settledAmounts(tag, ids), [250n, 60n, 0n]);
    assert.equal((await store.getAccount(tag))?.balance, funds);
    const state = await store.inspect(tag);
    assert.ok(state);
    assertIdentities(state);
  });

  test("a charge whose mark is gone is found among the first 64 lines since its admission (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpedge", { funds: 100_000n });
    const startMs = nowMs();
    setTime(startMs + 1_000);
    let number = 0;
    const admitOne = async (of = tag) => {
      const request = admitAsk({ tag: of, requestId: ridOf(++number) });
      return settleAsk(request, admitted(await store.admit(request)), { amount: 50n });
    };
    const [last, beyond] = [await admitOne(), await admitOne()];
    for (let i = 0; i < 63; i++) await store.settle(await admitOne());
    for (const one of [last, beyond]) assert.equal((await store.settle(one)).outcome, "settled");
    setTime(startMs + 365 * DAY_MS);
    await store.settledAmounts(tag, [last.requestId, beyond.requestId]);
    // As many as delete all expired marks of the embedded store.
    const late = await makeAccount(store, "Jumpedge2", { funds: 100_000n });
    for (let i = 0; i < 48; i++) await store.settle(await admitOne(late));
    setTime(startMs + 2_000);
    assert.equal((await store.settle(last)).outcome, "duplicate");
    // The price: the bound keeps a restored Redis from being slowed down (docs/failure-model.md).
    assert.equal((await store.settle(beyond)).outcome, "settled");
  });

  test("a held request is settled although the clock says that it was admitted days ago (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Jumpheld");
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const charge = settleAsk(request, admitted(await store.admit(request)), { amount: 100n });
    setTime(nowMs() + 365 * DAY_MS);
    assert.equal((await store.settle(charge)).outcome, "settled");
    assert.equal((await store.settle(charge)).outcome, "duplicate");
    assert.equal((await store.inspect(tag))?.account.balance, 900n);
  });
}
