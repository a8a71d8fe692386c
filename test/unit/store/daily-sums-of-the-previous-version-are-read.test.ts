// docs/failure-model.md row G2: daily sums that were written before requests and tokens were counted keep their amounts, and
// their counts are 0.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { SCHEMA_STEPS } from "../../../src/store/embedded/database/schema.ts";
import { openStore } from "../../../src/store/open.ts";
import { NO_COUNTS } from "../../../src/store/sums/token-sums.ts";
import { startRedis } from "../../rig/redis.ts";
import { tagOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

const TAG = tagOf("Old");
/** The number of schema steps before the one that adds the counts. */
const STEPS_BEFORE = 3;

async function assertOldSum(store: Store): Promise<void> {
  assert.deepEqual(await store.readDays(TAG, "2026-06-01", "2026-06-02"), [
    {
      day: "2026-06-01",
      group: "big",
      model: "m",
      key: "key_1",
      amount: 40n,
      counts: NO_COUNTS,
      cost: 0n,
      absorbed: 0n,
    },
  ]);
}

test("a folder of the previous version is read with its sums", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-old-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const db = new DatabaseSync(join(dir, "tollgate.db"));
  db.exec(SCHEMA_STEPS.slice(0, STEPS_BEFORE).join(";"));
  db.exec(`PRAGMA user_version = ${STEPS_BEFORE}`);
  db.prepare("INSERT INTO days (tag, day, field, amount) VALUES (?, '2026-06-01', 'big|m|key_1', 40)").run(TAG);
  db.close();
  const store = await openStore({ kind: "embedded", dir });
  t.after(() => store.close());
  await assertOldSum(store);
});

test("a Redis of the previous version is read with its sums", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  await redis.command("HSET", `{a:${TAG}}:day:2026-06-01`, "big|m|key_1", "40");
  await assertOldSum(store);
});
