/** Codes are created, listed, voided and redeemed once; and spending is summed by day. */
import assert from "node:assert/strict";
import test from "node:test";
import type { CardFacts, Code } from "../../../src/store/records.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { utcDay } from "../../../src/values/time.ts";
import { admitAsk, admitted, cardTerms, codeHashOf, DAY_MS, makeAccount, ridOf, settleAsk, tagOf } from "./asks.ts";
import type { Ask } from "./contract.ts";

const DAY: CardFacts = {
  card: "day",
  plan: "pro",
  group: "cards",
  lastsMs: DAY_MS,
  starts: "at_redemption",
  quota: nanoUsd(5n),
};

const named = (...ids: string[]) => ids.map((id) => ({ id, hash: codeHashOf(id) }));

export function codeTests(ask: Ask): void {
  test("a code keeps the value it was created with, whatever is created later with its hash", async () => {
    const { store, nowMs } = ask();
    await store.createCodes(DAY, named("Cpin1"));
    await store.createCodes({ ...DAY, lastsMs: 1, quota: undefined, plan: "none" }, named("Cpin1"));
    const code = await store.getCode("Cpin1");
    assert.ok(Math.abs((code?.createdAtMs ?? 0) - nowMs()) < 60_000);
    const { createdAtMs: _, ...rest } = code ?? assert.fail();
    const nowhere = { batch: undefined, expiresAtMs: undefined, tag: undefined, claimedAtMs: undefined };
    assert.deepEqual(rest, { ...DAY, id: "Cpin1", state: "unused", ...nowhere });
    assert.equal(await store.getCode("Cnone"), undefined);
  });

  test("codes are created once per id, however many calls create them at once", async () => {
    const { store } = ask();
    const made = (prefix: string, round: number) =>
      Array.from({ length: 3 }, (_, at) => ({ id: `Ct${round}x${at}`, hash: codeHashOf(`${prefix} ${round} ${at}`) }));
    for (let round = 0; round < 5; round++) {
      const all = ["one", "two", "three"].map((prefix) => made(prefix, round));
      const outcomes = await Promise.all(all.map((codes) => store.createCodes(DAY, codes)));
      assert.deepEqual(outcomes.toSorted(), ["made", "taken", "taken"]);
      const winner = all[outcomes.indexOf("made")] ?? assert.fail();
      const tag = await makeAccount(store, `Ct${round}`);
      for (const { id, hash } of winner) {
        const answer = await store.redeem({ hash, tag });
        assert.deepEqual([answer.outcome, "code" in answer && answer.code.id], ["redeemed", id]);
      }
      assert.equal(await store.createCodes(DAY, winner), "made", "the same codes again");
      assert.equal(await store.createCodes(DAY, made("late", round)), "taken");
      const late = await store.redeem({ hash: codeHashOf(`late ${round} 0`), tag });
      assert.equal(late.outcome, "unknown_code");
    }
  });

  test("a thousand codes are created at once, and listed page by page", async () => {
    const { store } = ask();
    const ids = Array.from({ length: 1_000 }, (_, i) => `yy${String(i).padStart(4, "0")}`);
    await store.createCodes(DAY, named(...ids));
    const seen: string[] = [];
    let cursor: string | undefined = "yy";
    do {
      const page = await store.listCodes(cursor, 200);
      seen.push(...page.items.map((code) => code.id));
      cursor = page.next;
    } while (cursor !== undefined);
    assert.deepEqual(seen, ids);
    await assert.rejects(store.createCodes(DAY, named(...ids, "one more")), RangeError);
  });

  test("a redeemed code belongs to one account for good, and is credited once (invariant 11)", async () => {
    const { store } = ask();
    const [tag, other] = [await makeAccount(store, "Cred"), await makeAccount(store, "Cother")];
    await store.createCodes(DAY, named("Cred1"));
    const hash = codeHashOf("Cred1");
    const first = await store.redeem({ hash, tag });
    assert.ok(first.outcome === "redeemed");
    assert.deepEqual([first.code.state, first.code.tag, first.entitlement.id], ["redeemed", tag, "Cred1"]);
    assert.equal(first.entitlement.untilMs - first.entitlement.fromMs, DAY_MS);
    assert.deepEqual(await store.redeem({ hash, tag }), { ...first, outcome: "again" });
    assert.deepEqual(await store.redeem({ hash, tag: other }), { outcome: "used" });
    assert.equal((await store.voidCode("Cred1"))?.state, "redeemed", "a redeemed code cannot be voided");
    const lines = (await store.readLedger(tag, 1, 10)).map(
      (l) => `${l.kind} ${l.debit}>${l.credit} ${l.amount} ${l.reference}`,
    );
    assert.deepEqual(lines, ["card cards:day>ent_Cred1 5 Cred1"]);
    assert.equal((await store.readLedger(other, 1, 10)).length, 0);
    assert.deepEqual((await store.listCards(tag))?.cards, [first.entitlement]);
    assert.equal(await store.listCards(tagOf("Cnobody")), undefined);
  });

  test("an unknown code, a voided code or an unknown account changes nothing", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Cvoid");
    await store.createCodes(DAY, named("Cv1", "Cv2"));
    assert.equal((await store.voidCode("Cv1"))?.state, "void");
    assert.equal((await store.voidCode("Cv1"))?.state, "void");
    assert.equal(await store.voidCode("Cv none"), undefined);
    assert.deepEqual(await store.redeem({ hash: codeHashOf("Cv1"), tag }), { outcome: "void" });
    assert.deepEqual(await store.redeem({ hash: codeHashOf("Cv0"), tag }), { outcome: "unknown_code" });
    const nobody = { hash: codeHashOf("Cv2"), tag: tagOf("Cvnobody") };
    assert.deepEqual(await store.redeem(nobody), { outcome: "unknown_account" });
    assert.equal((await store.getCode("Cv2"))?.state, "unused", "an unknown account does not use up a code");
    assert.equal((await store.inspect(tag))?.entitlements.length, 0);
  });

  test("a batch has exactly its codes, page by page, even if they are created again", async () => {
    const { store, nowMs } = ask();
    const facts = { ...DAY, expiresAtMs: nowMs() + DAY_MS, batch: "Bfair" };
    const ids = Array.from({ length: 250 }, (_, i) => `Cb${String(i).padStart(3, "0")}`);
    await store.createCodes(DAY, named("Cbefore"));
    await store.createCodes(facts, named(...ids), { label: "fair ü", count: 250 });
    await store.createCodes(facts, named("Cbefore", ...ids), { label: "another", count: 1 });
    const { createdAtMs, ...rest } = (await store.getBatch("Bfair")) ?? assert.fail();
    assert.ok(Math.abs(createdAtMs - nowMs()) < 60_000);
    const { batch: id, ...worth } = facts;
    assert.deepEqual(rest, { ...worth, id, label: "fair ü", count: 250 });
    const seen: Code[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.listBatchCodes("Bfair", cursor, 100);
      seen.push(...page.items);
      cursor = page.next;
    } while (cursor !== undefined);
    assert.deepEqual(
      seen.map((code) => code.id),
      ids,
    );
    assert.ok(seen.every(({ batch, expiresAtMs }) => batch === "Bfair" && expiresAtMs === facts.expiresAtMs));
    assert.equal((await store.getCode("Cbefore"))?.batch, undefined);
    await store.createCodes({ ...DAY, batch: "Bfast" }, named("Cfast"), { label: "fast", count: 1 });
    const first = await store.listBatches("Bf", 1);
    assert.deepEqual([first.items.map((batch) => batch.id), first.next], [["Bfair"], "Bfair"]);
    assert.deepEqual(
      (await store.listBatches(first.next, 1)).items.map((batch) => batch.label),
      ["fast"],
    );
    assert.equal(await store.getBatch("Bnone"), undefined);
    assert.deepEqual(await store.listBatchCodes("Bnone", undefined, 10), { items: [], next: undefined });
  });

  test("codes are voided together, except those that an account has redeemed", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Cmany");
    await store.createCodes(DAY, named("Cm1", "Cm2", "Cm3"));
    await store.redeem({ hash: codeHashOf("Cm2"), tag });
    for (const time of ["first", "again"]) {
      const codes = await store.voidCodes(["Cm3", "Cm none", "Cm2"]);
      const states = codes.map(({ id, state }) => `${id} ${state}`);
      assert.deepEqual(states, ["Cm3 void", "Cm2 redeemed"], time);
    }
    assert.equal((await store.getCode("Cm1"))?.state, "unused");
    assert.deepEqual(await store.redeem({ hash: codeHashOf("Cm3"), tag }), { outcome: "void" });
    assert.deepEqual(await store.voidCodes([]), []);
    await assert.rejects(store.voidCodes(Array(201).fill("Cm1")), RangeError);
  });

  test("an expired code cannot be redeemed, except by the account that has it and by a repeated redemption from before the end", async () => {
    const { store, nowMs } = ask();
    const [tag, other] = [await makeAccount(store, "Clate"), await makeAccount(store, "Clater")];
    const late = { ...DAY, expiresAtMs: nowMs() - 60_000 };
    await store.createCodes(late, named("Cl1", "Cl2", "Cl3"));
    await store.createCodes({ ...DAY, expiresAtMs: nowMs() + 60_000 }, named("Cl4"));
    assert.deepEqual(await store.redeem({ hash: codeHashOf("Cl1"), tag }), { outcome: "expired" });
    assert.equal((await store.getCode("Cl1"))?.state, "unused");
    assert.equal((await store.inspect(tag))?.entitlements.length, 0);
    const again = { hash: codeHashOf("Cl2"), tag, fromMs: nowMs() - 120_000 };
    assert.equal(
      (await store.redeem(again)).outcome,
      "redeemed",
      "the journal repeats a redemption from before its end",
    );
    assert.equal((await store.redeem({ hash: again.hash, tag })).outcome, "again");
    assert.deepEqual(await store.redeem({ hash: again.hash, tag: other }), { outcome: "used" });
    assert.equal((await store.voidCode("Cl3"))?.state, "void");
    assert.deepEqual(await store.redeem({ hash: codeHashOf("Cl3"), tag }), { outcome: "void" });
    assert.equal((await store.redeem({ hash: codeHashOf("Cl4"), tag })).outcome, "redeemed");
  });

  test("a gift is distinct from a sold card, given once, and has a kind like any card", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Cgift");
    const given = { ...DAY, id: "gift1", reference: "sorry", afterPrevious: false, gift: true } as const;
    const card = await store.grant(tag, given);
    assert.equal(card?.card, "day");
    assert.deepEqual(await store.grant(tag, { ...given, card: "week", quota: undefined }), card);
    const over = { id: "Cover", card: "week", lastsMs: 1, fromMs: nowMs() - 60_000, gift: undefined } as const;
    const ended = await store.grant(tag, { ...given, ...over });
    const lines = (await store.readLedger(tag, 1, 10)).map((l) => `${l.kind} ${l.debit}>${l.credit} ${l.reference}`);
    assert.deepEqual(lines, ["card gifts:day>ent_gift1 sorry", "card cards:week>ent_Cover sorry"]);
    assert.deepEqual((await store.listCards(tag))?.cards, [card]);
    assert.deepEqual((await store.listCards(tag, true))?.cards, [ended, card]);
    const figures = await store.readFigures(tag, { cards: ["gift1"] });
    assert.equal(figures?.cards.get("gift1")?.card, "day");
  });

  test("consecutive cards each start when the previous one ends, the first at the store's time", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Cnext");
    await store.createCodes({ ...DAY, starts: "after_previous" }, named("Cn1", "Cn2"));
    const cards = [];
    for (const id of ["Cn1", "Cn2"]) {
      const answer = await store.redeem({ hash: codeHashOf(id), tag });
      assert.ok(answer.outcome === "redeemed");
      cards.push(answer.entitlement);
    }
    assert.equal(cards[1]?.fromMs, cards[0]?.untilMs);
  });

  test("daily sums distinguish group, model and key, and days without spending have none", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Cdays", { group: "cards" });
    await store.createCodes({ ...DAY, quota: nanoUsd(500n) }, named("Cd1"));
    await store.redeem({ hash: codeHashOf("Cd1"), tag });
    let day = "";
    for (const [number, model] of ["big-1", "big-2", "big-1"].entries()) {
      const request = admitAsk({ tag, requestId: ridOf(number), plans: ["pro"], groups: [cardTerms()] });
      const permit = admitted(await store.admit(request));
      const tokens = { input: 100, cachedInput: 20, cacheWrite: 3, output: 40 + number, reasoning: 5 };
      const charge = settleAsk(request, permit, { amount: 10n, model, tokens });
      await store.settle(charge);
      await store.settle(charge);
      day = utcDay(permit.storeTimeMs);
    }
    const refused = admitAsk({ tag, requestId: ridOf(9), plans: ["pro"], groups: [cardTerms()] });
    const tokens = { input: 1, cachedInput: 1, cacheWrite: 1, output: 1, reasoning: 1 };
    const voided = { voided: true, absorbed: 7n, absorbedCause: "client_gone", upstream: "east", tokens };
    await store.settle(settleAsk(refused, admitted(await store.admit(refused)), voided));
    const sum = { day, group: "cards", key: "key_Cdays" };
    const free = { cost: 0n, absorbed: 0n };
    const one = { requests: 1, input: 100, cachedInput: 20, cacheWrite: 3, output: 41, reasoning: 5 };
    const two = { requests: 2, input: 200, cachedInput: 40, cacheWrite: 6, output: 82, reasoning: 10 };
    assert.deepEqual(await store.readDays(tag, day, day), [
      { ...sum, model: "big-1", amount: 20n, counts: two, ...free },
      { ...sum, model: "big-2", amount: 10n, counts: one, ...free },
    ]);
    const dayAt = (offset: number) => utcDay(Date.parse(day) + offset * DAY_MS);
    assert.equal((await store.readDays(tag, dayAt(-365), day)).length, 2);
    assert.deepEqual(await store.readDays(tag, dayAt(1), dayAt(9)), []);
    assert.deepEqual(await store.readDays(tag, dayAt(-1), dayAt(-1)), []);
    assert.deepEqual(await store.readDays(tagOf("Cdnobody"), day, day), []);
    await assert.rejects(store.readDays(tag, dayAt(-366), day), RangeError);
    await assert.rejects(store.readDays(tag, "2026-02-30", day), RangeError);
  });
}
