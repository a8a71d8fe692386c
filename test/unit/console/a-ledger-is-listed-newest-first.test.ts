// The newest lines first, page by page, down to the first or the opening line, and not further back than requested.
import assert from "node:assert/strict";
import test from "node:test";
import { tagOf } from "../store/asks.ts";
import { embeddedBench } from "../store/benches.ts";
import { archiveThrough } from "../store/contract-archive.ts";
import { startConsole } from "./running-console.ts";

const HOUR_MS = 3_600_000;
const DAYS_60_MS = 60 * 24 * HOUR_MS;

/** An account with this many lines, one per hour. */
async function withLines(t: test.TestContext, count: number) {
  const bench = await embeddedBench();
  t.after(() => bench.close());
  const { store } = bench;
  const { ask } = await startConsole(t, { store });
  const tag = tagOf("Newest");
  await store.createAccount({ tag, name: "alice", plan: "free" });
  const startMs = bench.nowMs();
  for (let n = 1; n <= count; n++) {
    bench.setTime(startMs + n * HOUR_MS);
    await store.credit(tag, { id: `pay_${n}`, amount: 1n, kind: "topup", note: "" });
  }
  const lines = async (search: string) => {
    const { status, json } = await ask("GET", `/admin/v1/accounts/alice/ledger?${search}`);
    assert.equal(status, 200, JSON.stringify(json));
    return [json.items.map(({ seq }: { seq: number }) => seq), json.next];
  };
  return { bench, store, tag, startMs, ask, lines };
}

test("pages go from the newest line to the first, each line once", async (t) => {
  const { store, tag, lines, ask } = await withLines(t, 250);
  assert.deepEqual(await lines("order=newest&limit=3"), [[250, 249, 248], 248]);
  assert.deepEqual(await lines("order=newest&limit=3&before=248"), [[247, 246, 245], 245]);
  const seen: number[] = [];
  for (let search = "order=newest&limit=120"; ; ) {
    const [items, next] = await lines(search);
    seen.push(...items);
    if (next === null) break;
    search = `order=newest&limit=120&before=${next}`;
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 250 }, (_, i) => 250 - i),
  );
  assert.deepEqual(await lines("order=newest&limit=2&before=2"), [[1], null]);
  assert.deepEqual(await lines("order=newest&before=1"), [[], null]);
  assert.deepEqual(
    await lines("order=newest&before=9999&limit=1"),
    [[250], 250],
    "the limit counts from the newest line",
  );
  assert.deepEqual(await lines("order=oldest&limit=2"), [[1, 2], 2]);
  assert.equal((await store.getAccount(tag))?.lines, 250);
  await store.createAccount({ tag: tagOf("Nothing"), name: "bob", plan: "free" });
  assert.deepEqual((await ask("GET", "/admin/v1/accounts/bob/ledger?order=newest")).json, {
    account_id: "acct_Nothing000",
    items: [],
    next: null,
  });
});

test("lines older than the requested start are left out", async (t) => {
  const { startMs, lines } = await withLines(t, 20);
  const since = (hours: number) => new Date(startMs + hours * HOUR_MS).toISOString();
  assert.deepEqual(await lines(`order=newest&since=${since(18)}`), [[20, 19, 18], null]);
  assert.deepEqual(await lines(`order=newest&since=${since(21)}`), [[], null]);
  assert.deepEqual(await lines(`order=newest&since=${since(10)}&limit=2&before=13`), [[12, 11], 11]);
});

test("if the beginning is archived, the last line is the opening line", async (t) => {
  const { bench, store, tag, startMs, lines } = await withLines(t, 20);
  bench.setTime(startMs + DAYS_60_MS);
  assert.equal(await archiveThrough(store, tag, 15), "archived");
  assert.deepEqual(await lines("order=newest&limit=4"), [[20, 19, 18, 17], 17]);
  assert.deepEqual(await lines("order=newest&before=18"), [[17, 16, 15], null]);
  assert.deepEqual(await lines("order=newest&before=10"), [[], null], "archived lines are not listed");
});

test("parameters of the other order are refused by name", async (t) => {
  const { ask } = await withLines(t, 1);
  for (const search of [
    "order=newest&after=1",
    "before=1",
    "order=oldest&since=2026-01-01T00:00:00Z",
    "order=newest&since=2026-02-30T00:00:00Z",
    "order=newest&since=yesterday",
    "order=sideways",
    "order=newest&limit=0",
  ]) {
    const refused = await ask("GET", `/admin/v1/accounts/alice/ledger?${search}`);
    assert.deepEqual([refused.status, typeof refused.json.error.remedy], [400, "string"], search);
  }
});
