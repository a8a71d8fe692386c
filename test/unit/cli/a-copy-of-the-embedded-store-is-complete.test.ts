/**
 * `tollgate store backup` copies all that a gateway has written so far, while it runs, and never replaces an existing
 * file or another user's (docs/operation.md, "Backup and restore").
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { openStore } from "../../../src/store/open.ts";
import { makeAccount } from "../store/asks.ts";
import { run } from "./captured-run.ts";

const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
/** Above the highest process id of Linux (proc_sys_kernel(5), pid_max). */
const NO_PROCESS = 2 ** 22 + 1;

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-copy-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A store in use, with one account whose balance is 700. */
async function storeInUse(t: TestContext) {
  const dir = join(folder(t), "data");
  const store = await openStore({ kind: "embedded", dir });
  t.after(() => store.close());
  return { dir, store, tag: await makeAccount(store, "Copied", { funds: 700n }) };
}

test("a copy of a store in use has everything written before it, and nothing written after", async (t) => {
  const { dir, store, tag } = await storeInUse(t);
  const restored = join(folder(t), "restored");
  mkdirSync(restored);
  const file = join(restored, "tollgate.db");
  for (const pid of [NO_PROCESS, process.pid]) {
    writeFileSync(`${file}.${pid}.part`, "of a run that was cut off");
    writeFileSync(`${file}.${pid}.part-journal`, "of SQLite");
  }
  const ran = await run(["store", "backup", file, "--data", dir]);
  const { size, mode } = statSync(file);
  const words = `Copied 1 account and 1 ledger line of ${dir} to ${file}, ${size} bytes.\n`;
  assert.deepEqual(ran, { status: 0, out: words, err: "" });
  assert.equal(mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(restored), ["tollgate.db"]);
  await store.credit(tag, { id: "later", amount: 1n, kind: "topup", note: "" });
  const copy = await openStore({ kind: "embedded", dir: restored });
  t.after(() => copy.close());
  assert.deepEqual([(await store.getAccount(tag))?.balance, (await copy.getAccount(tag))?.balance], [701n, 700n]);
});

test("the folder may come from the environment, and --json reports what was copied", async (t) => {
  const { dir } = await storeInUse(t);
  const file = join(folder(t), "copy.db");
  const ran = await run(["store", "backup", file, "--json"], { env: { TOLLGATE_DATA: dir } });
  assert.deepEqual(JSON.parse(ran.out), { file, bytes: statSync(file).size, accounts: 1, ledger_lines: 1 });
});

test("as in docs/operation.md: a copy by another process, run from the folder above `data`, while recent rows are still in the write-ahead log", async (t) => {
  const { dir } = await storeInUse(t);
  const backup = () =>
    spawnSync(process.execPath, [MAIN, "store", "backup", "copy.db"], { cwd: dirname(dir), encoding: "utf8" });
  const { stdout, stderr } = backup();
  assert.match(stdout, /^Copied 1 account and 1 ledger line of \.\/data to copy\.db, [0-9]+ bytes\.\n$/, stderr);
  assert.match(
    backup().stderr,
    /^No copy was made: copy\.db already exists, and a copy never replaces another file; name another file\.\n$/,
  );
});

test("a copy never replaces a file, and a missing store or one of another user is refused", async (t) => {
  const { dir } = await storeInUse(t);
  const to = folder(t);
  const file = join(to, "copy.db");
  const refused = async (...words: string[]) => {
    const ran = await run(["store", "backup", ...words]);
    assert.deepEqual([ran.status, ran.out], [1, ""]);
    return ran.err;
  };
  writeFileSync(file, "older");
  assert.match(await refused(file, "--data", dir), /^No copy was made: .*copy\.db already exists/);
  rmSync(file);
  symlinkSync("nowhere", file);
  assert.match(await refused(file, "--data", dir), /^No copy was made: .*copy\.db already exists/);
  rmSync(file);
  assert.match(
    await refused(file, "--data", to),
    /^No copy was made: there is no embedded store in the folder .*\.\n$/,
  );
  // In a folder of its own: the checkout has ./data/demo after `npm start`.
  const nowhere = spawnSync(process.execPath, [MAIN, "store", "backup", file], { cwd: to, encoding: "utf8" });
  assert.match(nowhere.stderr, /no embedded store in the folder .*data; use --data or TOLLGATE_DATA to name another/);
  assert.equal(nowhere.status, 1);
  assert.match(
    await refused(join(to, "none", "copy.db"), "--data", dir),
    /: the folder .*none does not exist: create it first\.\n$/,
  );
  if (process.getuid?.() === 0) {
    chmodSync(dir, 0o755);
    chownSync(join(dir, "tollgate.db"), 65_534, 65_534);
    assert.match(
      await refused(file, "--data", dir),
      /belongs to another user: run this command as that user \(runuser -u NAME/,
    );
  }
  assert.deepEqual(readdirSync(to), []);
});

test("a copy touches neither the temporary file of another run nor a user's file beside it", async (t) => {
  const { dir } = await storeInUse(t);
  const to = folder(t);
  const file = join(to, "copy.db");
  const others = [`copy.db.${process.ppid}.part`, "copy.db.1x.part", "copy.db.part"];
  for (const name of others) writeFileSync(join(to, name), "not ours");
  const ran = await run(["store", "backup", file, "--data", dir]);
  assert.equal(ran.status, 0, ran.err);
  assert.deepEqual(readdirSync(to), ["copy.db", ...others].sort());
});

test("a name that SQLite would read as a URI is used as a file name", async (t) => {
  const { dir } = await storeInUse(t);
  const to = folder(t);
  const { status, stderr } = spawnSync(
    process.execPath,
    [MAIN, "store", "backup", "file:copy?mode=memory", "--data", dir],
    { cwd: to, encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  assert.deepEqual(readdirSync(to), ["file:copy?mode=memory"]);
});

test("a copy that does not fit on the disk leaves no file", async (t) => {
  const { dir } = await storeInUse(t);
  // Exceeds SQLite's memory cache, so that it writes before the copy is complete.
  const database = new DatabaseSync(join(dir, "tollgate.db"));
  database.exec("CREATE TABLE ballast (bytes); INSERT INTO ballast VALUES (zeroblob(5000000))");
  database.close();
  const to = folder(t);
  const command = [process.execPath, MAIN, "store", "backup", join(to, "copy.db"), "--data", dir];
  const { status, stderr } = spawnSync("sh", ["-c", 'ulimit -f 4096; exec "$0" "$@"', ...command], {
    encoding: "utf8",
  });
  assert.deepEqual([status, readdirSync(to)], [1, []], stderr);
  assert.match(stderr, /^No copy was made: the copy .* cannot be made/);
});

test("a damaged database leaves no copy", async (t) => {
  const [dir, to] = [folder(t), folder(t)];
  writeFileSync(join(dir, "tollgate.db"), "no database at all, whatever its name says. ".repeat(100));
  const ran = await run(["store", "backup", join(to, "copy.db"), "--data", dir]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /^No copy was made: the copy .* cannot be made: file is not a database/);
  assert.deepEqual(readdirSync(to), []);
});
