/**
 * After `account notify` has set a threshold, it asks whether notices have a receiver at all. If that is not answered, the
 * threshold is set nevertheless, and the command must not look as if it had failed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

test("a threshold is reported as set if the question after it is refused or not answered", async () => {
  for (const answer of [
    async () =>
      Response.json({ error: { message: "The store does not answer.", code: "store_down" } }, { status: 503 }),
    async () => {
      throw new TypeError("fetch failed");
    },
  ]) {
    const fetched = async (_: unknown, init?: RequestInit) =>
      init?.method === "PUT" ? Response.json({ name: "alice", notify_below_usd: "5.00" }) : answer();
    const { status, out, err } = await run(["account", "notify", "alice", "--below", "5.00"], {
      env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
      fetch: fetched as typeof fetch,
    });
    assert.deepEqual([status, err], [0, ""]);
    assert.equal(out, "A notice is sent when the balance of alice falls below 5.00 USD.\n");
  }
});
