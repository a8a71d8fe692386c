/** The ledger in the console of owners: the lines of a range of days, page by page, and the line of one request. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { type TestContext } from "node:test";
import { nanoUsd } from "../../../../src/values/money.ts";
import { newRequestId, printRequestId, type RequestId } from "../../../../src/values/request-id.ts";
import { settleAsk } from "../../store/asks.ts";
import { archiveThrough } from "../../store/contract-archive.ts";
import { startOwners } from "../sign-in/owners.ts";
import { holding } from "../test-store.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOON_MS = Date.UTC(2026, 7, 2, 12);

/** An owner whose ledger lines are written at the times that a test gives. */
async function withOwner(t: TestContext) {
  let msPerRead = 0;
  const owners = await startOwners(t, {}, (store) => holding(store, "readLedger", () => clock.advance(msPerRead)));
  const { store, clock } = owners;
  const tag = await owners.account("alice");
  let paid = 0;
  const pay = async (atMs: number, count = 1) => {
    clock.nowMs = atMs;
    for (let i = 0; i < count; i++) {
      await store.credit(tag, { id: `pay_${++paid}`, amount: nanoUsd(1n), kind: "topup", note: "" });
    }
  };
  /** Charges a request. */
  const charge = async (requestId: RequestId, atMs: number) => {
    clock.nowMs = atMs;
    const permit = { storeTimeMs: atMs, group: "big", keyId: "key_1", entitlement: undefined };
    await store.settle(settleAsk({ tag, requestId, groups: [] }, permit, { amount: 1n }));
  };
  const browser = owners.browser();
  /** Signs in, after all lines are written. */
  const enter = async () => {
    assert.equal((await browser.post("/sign-in/link", { token: await owners.link(tag) })).status, 200);
  };
  const lines = async (query: string) => {
    const { status, json } = await browser.get(`/lines?${query}`);
    assert.equal(status, 200, query);
    return { seqs: json.items.map(({ seq }: { seq: number }) => seq), next: json.next, to: json.searched_to };
  };
  const slowReads = (ms: number) => {
    msPerRead = ms;
  };
  return { store, tag, clock, browser, pay, charge, enter, lines, slowReads };
}

test("a range has all lines of its first and last day, and no others", async (t) => {
  const { pay, enter, lines, browser } = await withOwner(t);
  const midnight = Date.UTC(2026, 7, 2);
  for (const atMs of [midnight - 1, midnight, midnight + DAY_MS - 1, midnight + DAY_MS]) await pay(atMs);
  await enter();
  const seqs = async (query: string) => (await lines(query)).seqs;
  assert.deepEqual(await seqs(""), [4, 3, 2, 1]);
  assert.deepEqual(await seqs("since=2026-08-02&until=2026-08-02"), [3, 2]);
  assert.deepEqual(await seqs("since=2026-08-02"), [4, 3, 2]);
  assert.deepEqual(await seqs("until=2026-08-02"), [3, 2, 1]);
  assert.deepEqual(await seqs("until=2026-07-31"), []);
  const refused = await browser.get("/lines?since=2026-08-03&until=2026-08-02");
  assert.deepEqual([refused.status, refused.code], [400, "malformed"]);
});

test("pages continue down to the first line, and a full last page says that it is the last", async (t) => {
  const { pay, enter, lines } = await withOwner(t);
  await pay(NOON_MS, 5);
  await enter();
  const some = async (query: string) => {
    const { seqs, next } = await lines(query);
    return [seqs, next];
  };
  assert.deepEqual(await some("limit=2"), [[5, 4], 4]);
  assert.deepEqual(await some("limit=2&before=4"), [[3, 2], 2]);
  assert.deepEqual(await some("limit=2&before=2"), [[1], null]);
  assert.deepEqual(await some("limit=5"), [[5, 4, 3, 2, 1], null]);
});

test("if the beginning is archived, the opening balance is shown once, with nothing below it", async (t) => {
  const { pay, enter, lines, store, tag, clock } = await withOwner(t);
  await pay(NOON_MS, 5);
  clock.nowMs = NOON_MS + 5 * DAY_MS;
  assert.equal(await archiveThrough(store, tag, 3), "archived");
  await pay(clock.nowMs);
  await enter();
  assert.deepEqual(await lines(""), { seqs: [6, 5, 4, 3], next: null, to: null });
  assert.deepEqual((await lines("before=5")).seqs, [4, 3]);
  assert.deepEqual((await lines("before=3")).seqs, []);
  assert.deepEqual((await lines("until=2026-08-06")).seqs, [5, 4, 3]);
});

test("a long search ends after about a second, says how far it got, and can be continued", async (t) => {
  const { pay, charge, enter, lines, slowReads } = await withOwner(t);
  const id = newRequestId(NOON_MS, randomBytes);
  await pay(NOON_MS);
  await charge(id, NOON_MS);
  await pay(NOON_MS + HOUR_MS, 250);
  await enter();
  slowReads(600);
  const first = await lines("key=key_4tR0000abcXyZ01234&limit=1");
  assert.deepEqual(first, { seqs: [], next: 53, to: new Date(NOON_MS + HOUR_MS).toISOString() });
  assert.deepEqual(await lines(`limit=200&before=${first.next}&since=2026-08-03`), { seqs: [], next: null, to: null });
});

test("a request is found if the store's clock is behind that of the gateway that served it", async (t) => {
  const { pay, charge, enter, browser } = await withOwner(t);
  const id = newRequestId(NOON_MS, randomBytes);
  await pay(NOON_MS - 9 * MINUTE_MS);
  await charge(id, NOON_MS - 8 * MINUTE_MS);
  await pay(NOON_MS - 7 * MINUTE_MS, 120);
  await enter();
  const { json } = await browser.get(`/requests/${printRequestId(id)}`);
  assert.deepEqual([json.outcome, json.line?.seq], ["charged", 2]);
});

test("a request that was charged two days late is found after all lines in between, over several answers", async (t) => {
  const { pay, charge, enter, browser, slowReads } = await withOwner(t);
  const [id, never] = [newRequestId(NOON_MS, randomBytes), newRequestId(NOON_MS, randomBytes)];
  await pay(NOON_MS + HOUR_MS, 350);
  await charge(id, NOON_MS + 2 * DAY_MS);
  await enter();
  slowReads(400);
  const outcomes: string[] = [];
  let after = "";
  for (let line: { seq: number } | null = null; line === null && outcomes.length < 10; ) {
    const { json } = await browser.get(`/requests/${printRequestId(id)}${after}`);
    outcomes.push(json.outcome);
    after = `?after=${json.next}`;
    line = json.line;
    if (line) assert.equal(line.seq, 351);
  }
  assert.deepEqual([outcomes.length > 1, outcomes.at(0), outcomes.at(-1)], [true, "searching", "charged"]);
  slowReads(0);
  const refused = await browser.get(`/requests/${printRequestId(never)}`);
  assert.deepEqual([refused.status, refused.code], [404, "unknown_request"]);
});
