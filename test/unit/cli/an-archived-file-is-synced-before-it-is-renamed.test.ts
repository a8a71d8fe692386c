/** After any crash every file of the archive is complete: the store may already have deleted its lines. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { writeArchive } from "../../../src/cli/archive/files.ts";
import { newChain } from "../../../src/store/ledger/line-chain.ts";
import type { LedgerLine } from "../../../src/store/records.ts";
import { nanoUsd } from "../../../src/values/money.ts";

const LINE: LedgerLine = {
  ...{ seq: 1, atMs: 1_800_000_000_000, kind: "topup", debit: "topup", credit: "acct_A1" },
  ...{ amount: nanoUsd(5n), balance: 5n, reference: "pay-1", group: "", model: "", key: "", memo: "" },
};

test("a file is synced before it gets its name, and its folder is synced before it counts as written", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-archive-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const probe = await open(dir, "r");
  const handles = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  const path = join(dir, "acct_A1.000000000001-000000000001.ndjson.gz");
  const synced: object[] = [];
  const { sync } = handles;
  t.mock.method(handles, "sync", async function (this: FileHandle) {
    const facts = await this.stat();
    synced.push({
      what: facts.isDirectory() ? "folder" : "file",
      isEmpty: facts.size === 0,
      isNamed: existsSync(path),
    });
    await sync.call(this);
  });
  assert.equal((await writeArchive(dir, "acct_A1", [LINE], newChain("acct_A1", 1))).path, path);
  assert.deepEqual(synced, [
    { what: "file", isEmpty: false, isNamed: false },
    { what: "folder", isEmpty: false, isNamed: true },
  ]);
});
