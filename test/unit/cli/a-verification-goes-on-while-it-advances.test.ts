/**
 * `tollgate ledger verify` against a gateway that loses its progress, and what it prints if there are more findings
 * than are kept.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

const ENV = { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" };
const FORGOTTEN = { items: [], restarted: true, progress: { account: "alice", lines: 7 }, next: "on" };
const balanced = (account: string, next: string | null) => ({
  items: [{ account, outcome: "balanced", findings: [], finding_count: 0 }],
  ...{ restarted: false, progress: null, next },
});

/** Runs it against these pages of accounts; all settled marks are in order. */
function verified(pages: readonly object[]) {
  const left = [...pages];
  const fetched = async (url: string | URL | Request) => {
    const body = String(url).includes("/ledger/marks") ? { items: [], restarted: false, next: null } : left.shift();
    return Response.json(body);
  };
  return run(["ledger", "verify"], { env: ENV, fetch: fetched as typeof fetch });
}

test("a verification that loses its progress now and then, but advances in between, is continued to its end", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const pages = names.flatMap((name, at) => [FORGOTTEN, balanced(name, at === names.length - 1 ? null : "on")]);
  const { status, out, err } = await verified(pages);
  assert.deepEqual([status, err], [0, ""]);
  assert.match(out, /^Accounts verified: 5; out of balance: 0\.$/m);
});

test("a verification that loses its progress repeatedly at one account is given up, and the account is named", async () => {
  const { status, err } = await verified([FORGOTTEN, FORGOTTEN, FORGOTTEN, FORGOTTEN]);
  assert.equal(status, 1);
  assert.match(err, /lost its progress with the account alice 4 times\./);
});

test("findings that are not kept are counted after those that are", async () => {
  const findings = [
    { check: "sums", line: 3, what: "one" },
    { check: "sums", line: null, what: "another" },
  ];
  const item = { account: "alice", outcome: "unbalanced", findings, finding_count: 7 };
  const { status, err } = await verified([{ items: [item], restarted: false, progress: null, next: null }]);
  assert.equal(status, 1);
  assert.match(err, /Account alice, line 3: sums: one\nAccount alice: sums: another\nAccount alice: and 5 more\./);
});
