/**
 * A run that finds a file of an earlier, interrupted run archives the lines in it first and then writes further files. Each
 * file names the digest of all lines before it, so that a file that is missing or replaced is noticed.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { listArchive, readFaulty, writeArchive } from "../../../src/cli/archive/files.ts";
import { newChain } from "../../../src/store/ledger/line-chain.ts";
import { toPlain } from "../../../src/store/ledger/plain-line.ts";
import type { LedgerLine } from "../../../src/store/records.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { run } from "./captured-run.ts";

const ACCOUNT = "acct_alice";
const LINES = 20;
const WRITTEN = 8;

const lines = Array.from({ length: LINES }, (_, at): LedgerLine => {
  const sides = { kind: "topup", debit: "topup", credit: ACCOUNT, memo: "" } as const;
  const amounts = { amount: nanoUsd(1n), balance: BigInt(at + 1) };
  return { seq: at + 1, atMs: 1_000 + at, reference: `pay-${at}`, group: "", model: "", key: "", ...sides, ...amounts };
});

test("the file after one that was left names the digest with which that one ends", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "tollgate-archive-"));
  t.after(() => rmSync(parent, { recursive: true, force: true }));
  const dir = join(parent, "files");
  await writeArchive(dir, ACCOUNT, lines.slice(0, WRITTEN), newChain(ACCOUNT, 1));
  let through = 0;
  const gateway = async (url: string | URL | Request, init?: RequestInit) => {
    const { pathname, searchParams } = new URL(String(url));
    if (init?.method === "POST") {
      through = JSON.parse(String(init.body)).through;
      return Response.json({});
    }
    assert.equal(pathname, "/admin/v1/accounts/alice/ledger/lines");
    const after = Math.max(through, Number(searchParams.get("after")));
    const items = lines.slice(after, after + Number(searchParams.get("limit"))).map(toPlain);
    const next = after + items.length < LINES ? after + items.length : null;
    return Response.json({ id: ACCOUNT, tag: "alice", items, next, stay_from_ms: Date.parse("2026-01-01") });
  };
  const ran = await run(["ledger", "archive", "--before", "2026-01-01", "--to", dir, "--account", "alice"], {
    env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:9", TOLLGATE_ADMIN_TOKEN: "a-token-of-the-test" },
    fetch: gateway as typeof fetch,
  });
  assert.deepEqual([ran.status, ran.err, through], [0, "", LINES]);
  const files = await listArchive(dir);
  assert.deepEqual(
    files.map(({ first, last }) => [first, last]),
    [
      [1, WRITTEN],
      [WRITTEN + 1, LINES],
    ],
  );
  const [left, more] = await Promise.all(files.map(readFaulty));
  assert.deepEqual([left?.faults, more?.faults], [[], []]);
  assert.equal(more?.chain?.before, left?.chain?.after);
});
