/**
 * `tollgate store status` is used by scripts that wait until a store can be used. A store that has all of its data but
 * cannot be used for another reason, such as a full disk, makes it fail, too.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

const statusOf = (body: object) =>
  run(["store", "status"], {
    env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
    fetch: (async () => Response.json({ waiting_charges: 0, ...body })) as typeof fetch,
  });

test("a store is fine if it has all of its data and no problem; a gateway of an earlier version names no problem", async () => {
  assert.equal((await statusOf({ state: "good" })).status, 0);
  assert.equal((await statusOf({ state: "good", problem: null })).status, 0);
  const full = await statusOf({ state: "good", problem: "it cannot save its snapshot" });
  assert.equal(full.status, 1);
  assert.match(full.out, /^The store cannot be used: it cannot save its snapshot\.$/m);
  assert.match(full.err, /^New requests are refused until the store can be used\./);
  assert.equal((await statusOf({ state: "restoring", problem: null })).status, 1);
});
