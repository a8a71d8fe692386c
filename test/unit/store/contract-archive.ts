/** The beginning of a ledger is replaced by one opening line, and every identity holds before, between and after. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import {
  ARCHIVE_AGE_MS,
  ARCHIVE_LINES_MAX,
  type ArchiveOutcome,
  openingLine,
} from "../../../src/store/ledger/opening.ts";
import { LedgerWalk } from "../../../src/store/ledger/walk.ts";
import type { LedgerLine } from "../../../src/store/records.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import { admitAsk, admitted, cardTerms, DAY_MS, makeAccount, ridOf, settleAsk, tagOf } from "./asks.ts";
import type { Ask } from "./contract.ts";
import { assertIdentities } from "./contract-settle.ts";

/** Archives up to a line, as the admin API does. */
export async function archiveThrough(store: Store, tag: AccountTag, through: number): Promise<ArchiveOutcome> {
  return store.archiveLedger(tag, await archiveAsk(store, tag, through));
}

/** The request to the store to archive up to a line. */
export async function archiveAsk(
  store: Store,
  tag: AccountTag,
  through: number,
): Promise<Parameters<Store["archiveLedger"]>[1]> {
  const walk = new LedgerWalk(tag);
  const [head] = await store.readLedger(tag, 0, 1);
  const after = head?.kind === "opening" ? head.seq : 0;
  let last: LedgerLine | undefined = head;
  for (const line of await store.readLedger(tag, 0, ARCHIVE_LINES_MAX)) {
    if (line.seq > through) break;
    walk.add(line);
    last = line;
  }
  assert.ok(last);
  return { after, opening: { ...openingLine(tag, last, walk.tally.facts), seq: through } };
}

/** Creates an account with five top-ups, a card and spending on it. */
async function busyAccount(store: Store, name: string): Promise<AccountTag> {
  const tag = await makeAccount(store, name, { group: "cards" });
  for (let i = 0; i < 4; i++) await store.credit(tag, { id: `p${i}`, amount: 10n, kind: "topup", note: "" });
  const card = { id: `${name}c`, card: "day", plan: "pro", group: "cards", lastsMs: 30 * DAY_MS, afterPrevious: false };
  await store.grant(tag, { ...card, reference: "c", quota: nanoUsd(200n) });
  const request = admitAsk({ tag, requestId: ridOf(1), plans: ["pro"], groups: [cardTerms()] });
  await store.settle(settleAsk(request, admitted(await store.admit(request)), { amount: 30n }));
  return tag;
}

const numbers = async (store: Store, tag: AccountTag) =>
  (await store.readLedger(tag, 0, 100)).map(({ seq, kind }) => `${seq} ${kind}`);

/** Refusals of every form of the store, with any clock. */
export function archiveRefusalTests(ask: Ask): void {
  test("lines younger than 96 hours are not archived, and the ledger starts after the archived lines", async () => {
    const { store } = ask();
    const tag = await busyAccount(store, "Ayoung");
    const before = await store.inspect(tag);
    assert.equal(await archiveThrough(store, tag, 3), "too_young");
    const [, line] = await store.readLedger(tag, 0, 10);
    assert.ok(line);
    const opening = openingLine(tag, line, new LedgerWalk(tag).tally.facts);
    assert.equal(await store.archiveLedger(tag, { after: 1, opening }), "moved");
    assert.equal(await store.archiveLedger(tag, { after: 0, opening: { ...opening, balance: 1n } }), "moved");
    assert.equal(await store.archiveLedger(tag, { after: 0, opening: { ...opening, seq: 99 } }), "moved");
    assert.equal(await store.archiveLedger(tagOf("Anobody"), { after: 0, opening }), "unknown_account");
    await assert.rejects(store.archiveLedger(tag, { after: 0, opening: line }), RangeError);
    await assert.rejects(
      store.archiveLedger(tag, { after: 0, opening: { ...opening, seq: ARCHIVE_LINES_MAX + 1 } }),
      RangeError,
    );
    assert.deepEqual(await store.inspect(tag), before);
  });
}

export function archiveTests(ask: Ask): void {
  test("an opening line replaces the archived lines, in steps, once each", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await busyAccount(store, "Asteps");
    setTime(nowMs() + ARCHIVE_AGE_MS);
    assert.equal(await archiveThrough(store, tag, 2), "archived");
    assert.deepEqual(await numbers(store, tag), ["2 opening", "3 topup", "4 topup", "5 topup", "6 card", "7 usage"]);
    assert.deepEqual(
      await store.readLedger(tag, 2, 1),
      await store.readLedger(tag, 0, 2).then((lines) => lines.slice(1)),
    );
    assert.equal((await store.readLedger(tag, 1, 100))[0]?.kind, "opening");
    const [opening] = await store.readLedger(tag, 0, 1);
    assert.ok(opening);
    assert.deepEqual([opening.amount, opening.balance, opening.reference], [1_010n, 1_010n, "1-2"]);
    assert.equal(await store.archiveLedger(tag, { after: 0, opening }), "duplicate");
    assert.equal(await store.archiveLedger(tag, { after: 0, opening: { ...opening, seq: 3 } }), "moved");
    await store.credit(tag, { id: "later", amount: 5n, kind: "adjust", note: "" });
    assert.equal(await archiveThrough(store, tag, 7), "archived");
    assert.deepEqual(await numbers(store, tag), ["7 opening", "8 adjust"]);
    const state = await store.inspect(tag);
    assert.ok(state);
    assertIdentities(state);
    assert.deepEqual(state.ledger, await store.readLedger(tag, 0, 100));
    setTime(nowMs() + ARCHIVE_AGE_MS);
    assert.equal(await archiveThrough(store, tag, 8), "archived");
    await store.credit(tag, { id: "last", amount: 5n, kind: "topup", note: "" });
    assert.deepEqual(await numbers(store, tag), ["8 opening", "9 topup"]);
    assertIdentities((await store.inspect(tag)) ?? assert.fail());
  });

  test("an audit of an archived ledger finds its figures, and finds a wrong opening line", async () => {
    const { store, nowMs, setTime } = ask();
    const tag = await makeAccount(store, "Aaudit");
    for (let i = 0; i < 4; i++) await store.credit(tag, { id: `p${i}`, amount: 10n, kind: "topup", note: "" });
    setTime(nowMs() + ARCHIVE_AGE_MS);
    const audited = () => auditToEnd(auditAccount(store, { name: "Aaudit", tag }));
    assert.equal(await archiveThrough(store, tag, 2), "archived");
    assert.equal((await audited())?.outcome, "balanced");
    const lines = await store.readLedger(tag, 0, 4);
    const walk = new LedgerWalk(tag);
    for (const line of lines) walk.add(line);
    const lie = openingLine(tag, lines.at(-1) as LedgerLine, { ...walk.tally.facts, topped: 7n });
    assert.equal(await store.archiveLedger(tag, { after: 2, opening: lie }), "archived");
    const found = await audited();
    assert.deepEqual(
      [found?.outcome, found?.findings.map(({ what }) => what.split(" is ")[0])],
      ["unbalanced", ["The sum topped up"]],
    );
  });
}
