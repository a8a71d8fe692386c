/** What audits and sums read: figures of one instant, names and days in pages, however much there is. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { FIGURES_MAX } from "../../../src/store/figures.ts";
import type { DaySum } from "../../../src/store/records.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { utcDay } from "../../../src/values/time.ts";
import { admitAsk, admitted, cardTerms, DAY_MS, hashOf, makeAccount, ridOf, settleAsk, tagOf } from "./asks.ts";
import type { Ask } from "./contract.ts";

/** Every page from the first to the last. */
async function allPages<P extends { readonly next: string | undefined }>(
  page: (cursor: string | undefined) => Promise<P>,
): Promise<P[]> {
  const pages: P[] = [];
  let cursor: string | undefined;
  do {
    const one = await page(cursor);
    pages.push(one);
    cursor = one.next;
    assert.ok(pages.length < 1_000, "it never ends");
  } while (cursor !== undefined);
  return pages;
}

const order = (a: DaySum, b: DaySum) => (`${a.day} ${a.model} ${a.key}` < `${b.day} ${b.model} ${b.key}` ? -1 : 1);

async function spend(store: Store, tag: AccountTag, at: number, model: string, admittedAtMs: number): Promise<void> {
  const request = admitAsk({ tag, requestId: ridOf(at) });
  const permit = { storeTimeMs: admittedAtMs, group: "big", keyId: `key_${at % 7}`, entitlement: undefined };
  const tokens = { input: 1, cachedInput: 2, cacheWrite: 3, output: 4, reasoning: 5 };
  const answer = await store.settle(settleAsk(request, permit, { amount: 1n, model, tokens }));
  assert.equal(answer.outcome, "settled");
}

export function figureTests(ask: Ask): void {
  test("figures are of one instant, and contain exactly what was requested", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Fone");
    assert.equal(await store.readFigures(tagOf("Fnobody"), {}), undefined);
    const card = { id: "c1", card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false };
    const given = await store.grant(tag, { ...card, reference: "c", quota: nanoUsd(200n) });
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    admitted(await store.admit(admitAsk({ tag, requestId: ridOf(2) })));
    await store.createKey(tag, { id: "key_cards", hash: hashOf("cards"), group: "cards" });
    const byCard = { tag, requestId: ridOf(3), keyHash: hashOf("cards"), plans: ["pro"], groups: [cardTerms()] };
    admitted(await store.admit(admitAsk(byCard)));
    await store.settle(settleAsk(request, permit, { amount: 30n }));

    const bare = await store.readFigures(tag, {});
    assert.ok(bare);
    assert.deepEqual(bare.account, await store.getAccount(tag));
    assert.deepEqual([bare.seq, bare.lastLine, bare.inFlight], [3, 3, 2]);
    assert.deepEqual([bare.holds, bare.paymentCount, bare.unreadable], [undefined, undefined, []]);
    assert.deepEqual([bare.cards.size, bare.marks.size, bare.scopes.size, bare.spent.size], [0, 0, 0, 0]);
    assert.ok(Math.abs(bare.storeTimeMs - nowMs()) < 60_000);

    const day = utcDay(permit.storeTimeMs);
    const field = "big|big-1|key_Fone";
    const figures = await store.readFigures(tag, {
      cards: ["c1", "none"],
      requests: [ridOf(1), ridOf(2)],
      payments: ["first", "none"],
      paymentCount: true,
      scopes: ["big", "cards", "none"],
      keys: [{ id: "key_Fone", hash: hashOf("key") }],
      spent: { days: [day, "2020-01-01"], fields: [field, "none"] },
      holds: true,
    });
    assert.ok(figures && given);
    assert.deepEqual(figures.cards.get("c1"), { ...given, held: 100n, listed: true });
    assert.deepEqual([figures.cards.has("none"), figures.cards.get("none")], [true, undefined]);
    assert.deepEqual([figures.marks.get(ridOf(1)), figures.marks.get(ridOf(2))], [30n, undefined]);
    assert.deepEqual([figures.payments.get("first"), figures.payments.get("none")], [1_000n, undefined]);
    assert.equal(figures.paymentCount, 1);
    assert.deepEqual([...figures.scopes.values()], [1, 1, 0]);
    assert.deepEqual(figures.keys, [
      { id: "key_Fone", hash: hashOf("key"), hashOfId: hashOf("key"), idOfHash: "key_Fone" },
    ]);
    assert.deepEqual([figures.spent.get(field)?.amount, figures.spent.get(field)?.counts.requests], [30n, 1]);
    assert.deepEqual([figures.spent.get("none")?.amount, figures.spent.get("none")?.counts.requests], [0n, 0]);
    const holds = [...(figures.holds ?? [])].sort((a, b) => (a.requestId < b.requestId ? -1 : 1));
    assert.deepEqual(
      holds.map(({ requestId, amount, scope, entitlement }) => [requestId, amount, scope, entitlement]),
      [
        [ridOf(2), 100n, "big", undefined],
        [ridOf(3), 100n, "cards", "c1"],
      ],
    );
    for (const { requestId, expiresAtMs } of holds) assert.equal(figures.expiries.get(requestId), expiresAtMs);
    assert.equal(figures.expiries.size, 2);
  });

  test("a request for too many figures is a defect of the caller", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Fmuch");
    const names = Array.from({ length: FIGURES_MAX + 1 }, (_, at) => `${at}`);
    await assert.rejects(store.readFigures(tag, { cards: names }), RangeError);
    await assert.rejects(store.readFigures(tag, { requests: names }), RangeError);
    await assert.rejects(store.readFigures(tag, { spent: { days: names, fields: [] } }), RangeError);
    await assert.rejects(store.readFigures(tag, { spent: { days: ["x}"], fields: [] } }), RangeError);
  });

  test("ids of cards are listed in pages, each at least once", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Fnames");
    const ids = Array.from({ length: 450 }, (_, at) => `card_${at}`);
    const card = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS, afterPrevious: false, reference: "" };
    for (const id of ids) await store.grant(tag, { ...card, id, quota: undefined });
    const pages = await allPages((cursor) => store.listRecords(tag, cursor));
    assert.ok(pages.length > 1);
    assert.deepEqual([...new Set(pages.flatMap(({ cards }) => cards))].sort(), ids.sort());
    assert.deepEqual(await allPages((cursor) => store.listRecords(tagOf("Fnobody"), cursor)), [
      { cards: [], scopes: [], keys: [], next: undefined },
    ]);
  });

  test("days are listed in pages without overlap: many days, and a day with many models", async () => {
    const { store, nowMs } = ask();
    const tag = await makeAccount(store, "Fdays", { funds: 100_000n });
    // A charge counts on the day of its admission; the day before has more models than fit on a page.
    const today = nowMs();
    for (let at = 0; at < 1_300; at++) await spend(store, tag, at, `m${at % 1_201}|x`, today - DAY_MS);
    for (let at = 1_300; at < 1_320; at++) await spend(store, tag, at, "m", today);
    const span = { since: utcDay(today - 40 * DAY_MS), until: utcDay(today + DAY_MS) };
    const pages = await allPages((cursor) => store.pageDays(tag, span, cursor));
    assert.ok(pages.length > 2, `${pages.length}`);
    const items = pages.flatMap((page) => page.items);
    const names = items.map(({ day, group, model, key }) => `${day} ${group} ${model} ${key}`);
    assert.equal(new Set(names).size, names.length, "no sum is on two pages");
    assert.deepEqual([...items].sort(order), [...(await store.readDays(tag, span.since, span.until))].sort(order));
    assert.equal(
      items.reduce((sum, { amount }) => sum + amount, 0n),
      1_320n,
    );
    const tokens = items.reduce((sum, { counts }) => sum + counts.requests + counts.reasoning, 0);
    assert.equal(tokens, 6 * 1_320);
    await assert.rejects(store.pageDays(tag, { since: "2026-01-01", until: "2027-06-01" }, undefined), RangeError);
  });

  test("accounts are found by name, and their names are listed without reading the accounts", async () => {
    const { store } = ask();
    const tag = await makeAccount(store, "Fnamed");
    assert.deepEqual(await store.findAccountName("Fnamed"), { name: "Fnamed", tag });
    assert.equal(await store.findAccountName("Fnobody"), undefined);
    const listed = await allPages((cursor) => store.listAccountNames(cursor, 3));
    const accounts = await allPages((cursor) => store.listAccounts(cursor, 3));
    assert.deepEqual(
      listed.flatMap(({ items }) => items.map(({ name }) => name)),
      accounts.flatMap(({ items }) => items.map(({ name }) => name)),
    );
    assert.ok(listed.every(({ items }) => items.length <= 3));
  });
}
