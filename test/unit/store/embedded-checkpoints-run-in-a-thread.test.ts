/**
 * A thread moves what the embedded store commits from SQLite's log into the database file, so that the event loop is not
 * blocked. What the thread cannot do is done later by a commit.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import workerThreads, { Worker } from "node:worker_threads";
import type { Store } from "../../../src/store/contract.ts";
import { Checkpoints, PAGES_MAX } from "../../../src/store/embedded/database/checkpoints.ts";
import { Database } from "../../../src/store/embedded/database/database.ts";
import { openStore } from "../../../src/store/open.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "./asks.ts";

/** A page in the log: its bytes and SQLite's header (https://www.sqlite.org/fileformat2.html#walformat). */
const FRAME_BYTES = 4_096 + 24;
/** Settlements, each of which writes about ten pages: more than the thread waits for, and fewer than a commit does. */
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

test("a thread moves committed data into the file, and all of it is there after a restart", async () => {
  const store = await openStore({ kind: "embedded", dir });
  const tag = await makeAccount(store, "Anna", { funds: 1_000_000n });
  const sizeBefore = statSync(file).size;
  await settleSome(store, tag, SOME);
  assert.ok(logPages() < PAGES_MAX, "no commit has moved the data into the file");
  while (statSync(file).size === sizeBefore) await setTimeout(5);
  const balance = (await store.getAccount(tag))?.balance;
  await store.close();
  assert.equal(balance, 1_000_000n - BigInt(SOME));
  const again = await openStore({ kind: "embedded", dir });
  assert.equal((await again.getAccount(tag))?.balance, balance);
  await again.close();
});

test("if the thread cannot work, commits restart the log from its beginning nevertheless", async () => {
  const other = `${file}-other`;
  const raw = new DatabaseSync(other);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
  const db = new Database(raw, undefined, undefined, new Checkpoints(join(dir, "nowhere", "tollgate.db")));
  for (let row = 0; row < PAGES_MAX * 2; row++) {
    db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", row));
    // Lets the thread answer.
    if (row % 1_000 === 0) await setTimeout(1);
  }
  assert.ok(logPages(other) < PAGES_MAX * 1.1, `${logPages(other)} pages`);
  assert.equal(db.get("SELECT count(*) AS n FROM t")?.n, BigInt(PAGES_MAX * 2));
  db.close();
});

test("if the system cannot start a thread, commits still succeed, and a thread is started later", async (t) => {
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
  const RealWorker = workerThreads.Worker;
  // What Node does when pthread_create fails with EAGAIN, as under a limit of processes.
  workerThreads.Worker = class {
    constructor() {
      throw Object.assign(new Error("Worker initialization failure: EAGAIN"), { code: "ERR_WORKER_INIT_FAILED" });
    }
  } as unknown as typeof RealWorker;
  syncBuiltinESMExports();
  try {
    insert(1_500);
  } finally {
    workerThreads.Worker = RealWorker;
    syncBuiltinESMExports();
  }
  assert.equal(db.get("SELECT count(*) AS n FROM t")?.n, BigInt(row));
  insert(1_000);
  assert.ok(logPages(other) < PAGES_MAX, "no commit has moved the data into the file");
  while (statSync(other).size === sizeBefore) await setTimeout(5);
});

test("work that the thread could not do is retried with the next commit", async (t) => {
  const begin = t.mock.method(Worker.prototype, "postMessage");
  const other = join(dir, "again.db");
  const raw = new DatabaseSync(other);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE)");
  raw.exec("BEGIN; CREATE TABLE u (x); CREATE TABLE v (x); COMMIT");
  const later = join(dir, "later");
  const checkpoints = new Checkpoints(join(later, "again.db"));
  t.after(() => checkpoints.close());
  const sizeBefore = statSync(other).size;
  checkpoints.committed(1_000);
  const thread = begin.mock.calls[0]?.this as Worker;
  await once(thread, "message");
  assert.equal(statSync(other).size, sizeBefore, "there is no such folder");
  symlinkSync(dir, later);
  checkpoints.committed(1);
  assert.equal(begin.mock.callCount(), 2);
  await once(thread, "message");
  assert.notEqual(statSync(other).size, sizeBefore);
  checkpoints.committed(999);
  assert.equal(begin.mock.callCount(), 2, "the count restarts after a success");
  raw.close();
});

test("each commit reports the number of its own rows", () => {
  const told: number[] = [];
  class Told extends Checkpoints {
    override committed(rows: number): void {
      told.push(rows);
    }
  }
  const raw = new DatabaseSync(":memory:");
  raw.exec("CREATE TABLE t (x)");
  const db = new Database(raw, undefined, undefined, new Told("nowhere"));
  const insert = (rows: number) => () => {
    for (let row = 0; row < rows; row++) db.run("INSERT INTO t (x) VALUES (?)", row);
  };
  for (const rows of [3, 1, 2]) db.commitNormal(insert(rows));
  db.commitFull(insert(4));
  assert.deepEqual(told, [3, 1, 2, 4]);
  db.close();
});

test("the thread is ended with the database, and not started again", (t) => {
  const terminate = t.mock.method(Worker.prototype, "terminate");
  const begin = t.mock.method(Worker.prototype, "postMessage");
  const checkpoints = new Checkpoints(`${file}-closed`);
  const raw = new DatabaseSync(":memory:");
  const db = new Database(raw, undefined, undefined, checkpoints);
  checkpoints.committed(1_000);
  db.close();
  checkpoints.committed(1_000);
  assert.deepEqual([begin.mock.callCount(), terminate.mock.callCount()], [1, 1]);
  const unused = new Checkpoints(`${file}-closed`);
  unused.close();
  unused.committed(1_000);
  assert.equal(begin.mock.callCount(), 1);
});

test("the thread is called once per thousand rows, one call at a time, and again after it has answered", async (t) => {
  const begin = t.mock.method(Worker.prototype, "postMessage");
  const path = `${file}-counted`;
  const raw = new DatabaseSync(path);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
  const checkpoints = new Checkpoints(path);
  t.after(() => checkpoints.close());
  checkpoints.committed(999);
  assert.equal(begin.mock.callCount(), 0);
  checkpoints.committed(1);
  const [thread] = begin.mock.calls.map((call) => call.this as Worker);
  assert.ok(thread);
  const answered = once(thread, "message");
  for (let i = 0; i < 3; i++) checkpoints.committed(999);
  assert.equal(begin.mock.callCount(), 1, "a call is in progress");
  await answered;
  checkpoints.committed(1);
  assert.equal(begin.mock.callCount(), 2);
  await once(thread, "message");
  checkpoints.committed(999);
  assert.equal(begin.mock.callCount(), 2, "the count restarts");
  // A thread that fails, for example for lack of memory, is no defect: commits do its work.
  thread.emit("error", new Error("no memory"));
  raw.close();
});

test("repeated calls do not leave more files open", async () => {
  const path = `${file}-open`;
  const raw = new DatabaseSync(path);
  raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t (x) VALUES (1)");
  const openFiles = () =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).startsWith(path);
      } catch {
        return false;
      }
    }).length;
  const post = Worker.prototype.postMessage;
  const threads = new Set<Worker>();
  Worker.prototype.postMessage = function (this: Worker, ...args: Parameters<Worker["postMessage"]>) {
    threads.add(this);
    return post.apply(this, args);
  };
  const checkpoints = new Checkpoints(path);
  try {
    const open: number[] = [];
    for (let times = 0; times < 4; times++) {
      checkpoints.committed(1_000);
      for (const thread of threads) await once(thread, "message");
      open.push(openFiles());
    }
    assert.equal(threads.size, 1);
    // SQLite closes a file, or reuses it for the next opening, when nothing in the process has it locked.
    assert.deepEqual(open.slice(1), open.slice(0, 3));
  } finally {
    Worker.prototype.postMessage = post;
    checkpoints.close();
    raw.close();
  }
});

test("the thread does not keep a process alive that does not close its store", () => {
  const script = `
    import { DatabaseSync } from "node:sqlite";
    import { Database } from "${new URL("../../../src/store/embedded/database/database.ts", import.meta.url)}";
    import { Checkpoints } from "${new URL("../../../src/store/embedded/database/checkpoints.ts", import.meta.url)}";
    const raw = new DatabaseSync(${JSON.stringify(`${file}-left`)});
    raw.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    const db = new Database(raw, undefined, undefined, new Checkpoints(${JSON.stringify(`${file}-left`)}));
    for (let row = 0; row < 1_500; row++) db.commitNormal(() => db.run("INSERT INTO t (x) VALUES (?)", row));`;
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 120_000,
  });
  assert.equal(status, 0, stderr);
});
