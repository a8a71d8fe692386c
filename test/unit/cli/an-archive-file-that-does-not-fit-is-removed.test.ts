/** A process that may write no bytes into files stands for a full disk. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const files = new URL("../../../src/cli/archive/files.ts", import.meta.url);
const chain = new URL("../../../src/store/ledger/line-chain.ts", import.meta.url);

const WRITES = `
  import { writeArchive } from ${JSON.stringify(files)};
  import { newChain } from ${JSON.stringify(chain)};
  const line = {
    ...{ seq: 1, atMs: 1_800_000_000_000, kind: "topup", debit: "topup", credit: "acct_A1" },
    ...{ amount: 5n, balance: 5n, reference: "pay-1", group: "", model: "", key: "", memo: "" },
  };
  await writeArchive(process.env.ARCHIVE, "acct_A1", [line], newChain("acct_A1", 1));
`;

test("an archive file that could not be written leaves nothing in the folder", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-archive-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const archive = join(dir, "archive");
  mkdirSync(archive);
  const run = (limit: string) =>
    spawnSync("sh", ["-c", `${limit} exec "$0" "$@"`, process.execPath, "--input-type=module", "-e", WRITES], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, ARCHIVE: archive },
    });
  const failed = run("ulimit -f 0;");
  assert.match(failed.stderr, /Nothing more was archived/);
  assert.deepEqual(readdirSync(archive), []);
  assert.equal(run("").status, 0);
  assert.deepEqual(readdirSync(archive), ["acct_A1.000000000001-000000000001.ndjson.gz"]);
});
