/** Notices that belong to no account, such as one about an upstream, wait in a queue of the gateway: the table says so. */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

test("a row without an account is the gateway's", async () => {
  const row = { waiting: 2, dropped: 0, oldest_kind: "upstream_out", failures: 1 };
  const items = [
    { ...row, account: null },
    { ...row, account: "alice" },
  ];
  const { status, out } = await run(["webhook", "list"], {
    env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
    fetch: (async () => Response.json({ items, next: null, receiver: null })) as typeof fetch,
  });
  assert.equal(status, 0);
  assert.match(out, /^\(the gateway\) +2 +0 +upstream_out/m);
  assert.match(out, /^alice +2 +0 +upstream_out/m);
});
