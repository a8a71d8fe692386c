/** A clock that was ahead for days, or for a year, and is right again: what was written meanwhile does no lasting harm. */
import assert from "node:assert/strict";
import test from "node:test";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import { admitAsk, cardTerms, DAY_MS, hashOf, makeAccount, ridOf } from "./asks.ts";
import type { Ask } from "./contract.ts";

export function clockTests(ask: Ask): void {
  test("a card that was hidden while the clock was ahead runs again with the next request (row E1)", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Kcard", { group: "cards" });
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
    assert.deepEqual(await listed(), ["Kc1", "Kc2", "Kc3", "Kc4"]);
    const view = await store.readKey(tag, hashOf("key"));
    assert.deepEqual(
      view?.entitlements.map(({ id }) => id),
      ["Kc1", "Kc2", "Kc3", "Kc4"],
    );
    const checks = async () => {
      const { findings } = await auditToEnd(auditAccount(store, { name: "Kcard", tag }));
      return findings.map(({ check }) => check);
    };
    assert.deepEqual(await checks(), ["card_unlisted", "card_unlisted"]);
    assert.equal(await payer(), "Kc1");
    assert.deepEqual(await checks(), []);
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
    const tag = await makeAccount(store, "Kafter", { group: "cards" });
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
}
