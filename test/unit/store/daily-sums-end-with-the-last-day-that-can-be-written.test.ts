// docs/admin-api.md, usage: `until` may be any day. Nothing follows 9999-12-31, neither a page nor an error.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { startRedis } from "../../rig/redis.ts";
import { makeAccount } from "./asks.ts";
import { openUrl } from "./benches.ts";

async function assertEnds(store: Store): Promise<void> {
  const tag = await makeAccount(store, "Dlast");
  for (const since of ["9999-12-02", "9999-12-31"]) {
    const span = { since, until: "9999-12-31" };
    assert.deepEqual(await store.pageDays(tag, span, undefined), { items: [], next: undefined });
    assert.deepEqual(await store.pageUpstreamDays(tag, span, undefined), { items: [], next: undefined });
    assert.deepEqual(await store.readDays(tag, span.since, span.until), []);
  }
}

test("daily sums of an embedded store end with the last day that can be written", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-days-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const store = await openStore({ kind: "embedded", dir });
  t.after(() => store.close());
  await assertEnds(store);
});

test("daily sums on Redis end with the last day that can be written", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  await assertEnds(store);
});
