// docs/admin-api.md, usage: a page has a limited number of accounts, and an answer ends after about a second.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { writeCursor } from "../../../src/console/cursor.ts";
import { systemClock } from "../../../src/values/time.ts";
import { startConsole } from "./running-console.ts";

const NAMES = ["alice", "bob", "carol"];

/** @param msPerLook how far each reading moves the clock. */
async function withAccounts(t: TestContext, msPerLook = 0) {
  let nowMs = 0;
  const { ask } = await startConsole(t, { clock: { ...systemClock, monotonicMs: () => (nowMs += msPerLook) } });
  for (const name of NAMES) await ask("POST", "/admin/v1/accounts", { name });
  const page = async (query: string) => {
    const { status, json } = await ask("GET", `/admin/v1/usage?${query}`);
    assert.equal(status, 200);
    return { names: json.items.map(({ account }: { account: string }) => account), next: json.next };
  };
  /** The accounts of each page, to the end. */
  const pages = async (query: string) => {
    const found: string[][] = [];
    let next: string | null = "";
    do {
      const got = await page(`${query}${next && `&cursor=${next}`}`);
      found.push(got.names);
      next = got.next;
    } while (next !== null);
    return found;
  };
  return { ask, pages };
}

test("a page has as many accounts as requested, and no more", async (t) => {
  const { pages } = await withAccounts(t);
  assert.deepEqual(await pages("limit=1"), [["alice"], ["bob"], ["carol"], []]);
  assert.deepEqual(await pages("limit=2"), [["alice", "bob"], ["carol"]]);
  assert.deepEqual(await pages("limit=4"), [NAMES]);
});

test("if each account takes long, an answer ends early, and the next one continues after it", async (t) => {
  const { pages } = await withAccounts(t, 600);
  assert.deepEqual(await pages("limit=3"), [["alice", "bob"], ["carol"]]);
});

test("a cursor outside of its days is refused", async (t) => {
  const { ask } = await withAccounts(t);
  const statusAt = async (place: string) => {
    const cursor = writeCursor(["2026-08-02", "2026-08-31", "", place]);
    const { status, json } = await ask("GET", `/admin/v1/usage?account=alice&cursor=${cursor}`);
    return [status, json.error?.code];
  };
  for (const place of ["", "2026-08-02:x", "2026-08-31:x"]) assert.deepEqual(await statusAt(place), [200, undefined]);
  for (const place of ["2026-08-01:x", "2026-09-01:x", "2026-08-10", "2026-08-10 x", "2026-08-32:x", "x"]) {
    assert.deepEqual(await statusAt(place), [400, "malformed"], place);
  }
});
