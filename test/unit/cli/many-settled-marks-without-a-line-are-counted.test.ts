/**
 * A store that was restored in part may have thousands of settled marks without a ledger line. `tollgate ledger verify`
 * prints the first twenty of an account and the number of the others, together with what it found in the account.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { run } from "./captured-run.ts";

const ENV = { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" };
const MARKS = 30;

test("twenty marks are printed after the account's own findings, and all findings are counted", async () => {
  const finding = { check: "sums", line: 3, what: "another balance" };
  const account = { account: "alice", outcome: "unbalanced", findings: [finding], finding_count: 5 };
  const marks = Array.from({ length: MARKS }, (_, i) => ({
    ...{ account: "alice", check: "mark_without_line", line: null, what: `mark ${i}` },
  }));
  const fetched = async (url: string | URL | Request) =>
    Response.json(
      String(url).includes("/ledger/marks")
        ? { items: marks, restarted: false, next: null }
        : { items: [account], restarted: false, progress: null, next: null },
    );
  const { status, out, err } = await run(["--json", "ledger", "verify"], { env: ENV, fetch: fetched as typeof fetch });
  assert.equal(status, 1);
  const [item] = JSON.parse(out).items;
  assert.equal(item.finding_count, 5 + MARKS);
  assert.equal(item.findings.length, 1 + 20);
  const lines = err.trimEnd().split("\n");
  assert.match(lines[0] ?? "", /line 3: sums: another balance$/);
  assert.match(lines[20] ?? "", /mark_without_line: mark 19$/);
  assert.match(lines[21] ?? "", /Account alice: and 14 more\./);
});
