/**
 * What the embedded store commits is brought from SQLite's log into the database's file by a thread: the event loop does not
 * stand still for it. What the thread cannot do, a commit does, later.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import workerThreads from "node:worker_threads";
import type { Store } from "../../../src/store/contract.ts";
import { Database } from "../../../src/store/embedded/database.ts";
import { openStore } from "../../../src/store/open.ts";
import { Checkpoints, PAGES_MAX } from "../../../src/store/upkeep/checkpoints.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "./asks.ts";

/** A page in the log: its bytes and what SQLite says of it (https://www.sqlite.org/fileformat2.html#walformat). */
const FRAME_BYTES = 4_096 + 24;
/** Settlements of which each makes some ten pages: more than the thread waits for, and fewer than a commit does. */
const SOME = 250;

let dir: string;
let file: string;
let number = 0;

before(() => {
  dir = join(mkdtempSync(join(tmpdir(), "tollgate-checkpoints-")), "data");
  file = join(dir, "tollgate.db");
});

after(() => rmSync(join(dir, ".."), { recursive: true, force: true }));

async function settleSome(store: Store, tag: AccountTag, count: number): Promise<void> {
  for (const end = number + count; number < end; ) {
    const ask = admitAsk({ tag, requestId: ridOf(++number) });
    await store.settle(settleAsk(ask, admitted(await store.admit(ask)), { amount: 1n }));
  }
}

function logPages(of = file): number {
  return statSync(`${of}-wal`).size / FRAME_BYTES;
}

test("a thread brings what is committed into the file, and all is there after the next start", async () => {
  const store = await openStore({ kind: "embedded", dir });
  const tag = await makeAccount(store, "Anna", { funds: 1_000_000n });
  const sizeBefore = statSync(file).size;
  await settleSome(store, tag, SOME);
  assert.ok(logPages() < PAGES_MAX, "no commit has done it");
  while (statSync(file).size === sizeBefore) await setTimeout(5);
  const balance = (await store.getAccount(tag))?.balance;
  await store.close();
  assert.equal(balance, 1_000_000n - BigInt(SOME));
  const again = await openStore({ kind: "embedded", dir });
  assert.equal((await again.getAccount(tag))?.balance, balance);
  await again.close();
});

test("where the thread cannot, the log begins again from its start all the same", async () => {
  const other = `${file}-other`;
  const raw = new DatabaseSync(other);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
  const db = new Database(raw, undefined, undefined, new Checkpoints(join(dir, "nowhere", "tollgate.db")));
  for (let row = 0; row < PAGES_MAX * 2; row++) {
    db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", row));
    // The thread answers.
    if (row % 1_000 === 0) await setTimeout(1);
  }
  assert.ok(logPages(other) < PAGES_MAX * 1.1, `${logPages(other)} pages`);
  assert.equal(db.get("SELECT count(*) AS n FROM t")?.n, BigInt(PAGES_MAX * 2));
  db.close();
});

test("where the system has no thread left, a commit is a commit all the same, and a thread begins later", async (t) => {
  const other = `${file}-threadless`;
  const raw = new DatabaseSync(other);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
  const db = new Database(raw, undefined, undefined, new Checkpoints(other));
  t.after(() => db.close());
  const sizeBefore = statSync(other).size;
  let row = 0;
  const insert = (rows: number) => {
    for (const end = row + rows; row < end; row++) db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", row));
  };
  const { Worker } = workerThreads;
  // What Node does when pthread_create says EAGAIN, as under a limit of processes.
  workerThreads.Worker = class {
    constructor() {
      throw Object.assign(new Error("Worker initialization failure: EAGAIN"), { code: "ERR_WORKER_INIT_FAILED" });
    }
  } as unknown as typeof Worker;
  syncBuiltinESMExports();
  try {
    insert(1_500);
  } finally {
    workerThreads.Worker = Worker;
    syncBuiltinESMExports();
  }
  assert.equal(db.get("SELECT count(*) AS n FROM t")?.n, BigInt(row));
  insert(1_000);
  assert.ok(logPages(other) < PAGES_MAX, "no commit has done it");
  while (statSync(other).size === sizeBefore) await setTimeout(5);
});

test("what the thread could not do is tried again with the next commit", async (t) => {
  const other = join(dir, "again.db");
  const raw = new DatabaseSync(other);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE)");
  const later = join(dir, "later");
  const db = new Database(raw, undefined, undefined, new Checkpoints(join(later, "again.db")));
  t.after(() => db.close());
  const sizeBefore = statSync(other).size;
  for (let row = 0; row < 1_000; row++) db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", row));
  // The thread begins, finds no such folder, and answers.
  await setTimeout(500);
  assert.equal(statSync(other).size, sizeBefore);
  symlinkSync(dir, later);
  const untilMs = Date.now() + 10_000;
  // Fewer rows than it waits for as a rule.
  while (statSync(other).size === sizeBefore && Date.now() < untilMs) {
    db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", 0));
    await setTimeout(50);
  }
  assert.notEqual(statSync(other).size, sizeBefore);
});

test("a process that does not close its store is not kept by the thread", () => {
  const script = `
    import { DatabaseSync } from "node:sqlite";
    import { Database } from "${new URL("../../../src/store/embedded/database.ts", import.meta.url)}";
    import { Checkpoints } from "${new URL("../../../src/store/upkeep/checkpoints.ts", import.meta.url)}";
    const raw = new DatabaseSync(${JSON.stringify(`${file}-left`)});
    raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    const db = new Database(raw, undefined, undefined, new Checkpoints(${JSON.stringify(`${file}-left`)}));
    for (let row = 0; row < 1_500; row++) db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", row));`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 20_000,
  });
  assert.equal(status, 0, stderr);
});
