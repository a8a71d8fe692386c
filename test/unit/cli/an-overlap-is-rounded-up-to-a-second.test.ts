/**
 * The admin API takes the overlap of a key rotation in whole seconds. A shorter one is rounded up: the former value must
 * not end before the time that was typed.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

test("an overlap with a fraction of a second lasts until the next whole second, and 0 ends the former value at once", async () => {
  const seconds: unknown[] = [];
  const fetched = async (_: unknown, init?: RequestInit) => {
    seconds.push(JSON.parse(String(init?.body)).overlap_seconds);
    return Response.json({ id: "key_1", key: "sk-new", previous_until: "2026-08-01T00:00:00Z" });
  };
  for (const overlap of ["0", "400ms", "1500ms", "2s", "1h"]) {
    const { status, err } = await run(["key", "rotate", "key_1", "--overlap", overlap], {
      env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
      fetch: fetched as typeof fetch,
    });
    assert.equal(status, 0, err);
  }
  assert.deepEqual(seconds, [0, 1, 2, 2, 3_600]);
});
