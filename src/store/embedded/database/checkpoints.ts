/**
 * Checkpoints the embedded store in a thread of its own: moves committed pages from SQLite's write-ahead log into the
 * database file. For each hundred requests that come one by one, a checkpoint is some hundred pages and two syncs, 2 to
 * 5 ms. On the event loop, the slowest of a hundred requests waited for it.
 */
import { Worker } from "node:worker_threads";

/** This many written rows are about as many pages of the log. */
const ROWS_MAX = 1_000;

/**
 * When the log has this many pages, a commit checkpoints the rest itself, and the log starts over. Then the thread has
 * failed, or settlements kept coming and each batch began before a pass was complete.
 */
export const PAGES_MAX = 4_000;

/** The most passes until one finds no new commit. Then the log starts over, unless a batch has begun meanwhile. */
const PASSES_MAX = 4;

/**
 * The program is a string because a bundle has no second file for a thread. If it fails, the commits do the work
 * themselves.
 */
const PROGRAM = `
const { parentPort, workerData } = require("node:worker_threads");
const { DatabaseSync } = require("node:sqlite");
parentPort.on("message", () => {
  let isTaken = false;
  try {
    const db = new DatabaseSync(workerData);
    try {
      const pass = db.prepare("PRAGMA wal_checkpoint(PASSIVE)");
      for (let i = 0; i < ${PASSES_MAX}; i++) {
        const { log, checkpointed } = pass.get();
        if (log === checkpointed) break;
      }
      isTaken = true;
    } finally {
      db.close();
    }
  } catch {}
  parentPort.postMessage(isTaken);
});
`;

/** For one database. The thread starts when it is first needed. */
export class Checkpoints {
  readonly #path: string;
  #thread: Worker | undefined;
  #rows = 0;
  #isUnderWay = false;
  #isClosed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Called after a commit of about `rows` rows. Never throws, because the caller would treat an error as a failed
   * commit.
   */
  committed(rows: number): void {
    this.#rows += rows;
    if (this.#rows < ROWS_MAX || this.#isUnderWay || this.#isClosed) return;
    this.#rows = 0;
    try {
      this.#thread ??= this.#begin();
    } catch {
      // If the system has no thread left (ERR_WORKER_INIT_FAILED), commits do the work; the next try is after another
      // ROWS_MAX rows.
      return;
    }
    this.#isUnderWay = true;
    this.#thread.postMessage("begin");
  }

  /** Called before the database is closed. A checkpoint under way ends by itself. */
  close(): void {
    this.#isClosed = true;
    void this.#thread?.terminate();
  }

  #begin(): Worker {
    const thread = new Worker(PROGRAM, { eval: true, workerData: this.#path, execArgv: [], env: {} });
    thread.on("message", (isTaken: boolean) => {
      this.#isUnderWay = false;
      // A full disk may have space again, which the log would otherwise take, so the next commit retries.
      if (!isTaken) this.#rows = ROWS_MAX;
    });
    // Without the thread, commits do its work, as they did before it started.
    thread.on("error", () => {});
    // After the listeners, because each of them would keep the process waiting for the thread.
    thread.unref();
    return thread;
  }
}
