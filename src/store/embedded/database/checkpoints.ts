/**
 * Brings what the embedded store has committed from SQLite's log into the database's file, in a thread of its own. It is some
 * hundred pages and two syncs, 2 to 5 ms for each hundred requests that come one by one: on the event loop the slowest of a
 * hundred waited for it.
 */
import { Worker } from "node:worker_threads";

/** So many rows written are about as many pages of the log. */
const ROWS_MAX = 1_000;

/**
 * From so many pages in the log on, a commit brings over what is left itself, and the log begins again: the thread has failed, or
 * settlements kept coming, each batch of which has begun before a pass was complete.
 */
export const PAGES_MAX = 4_000;

/** Tries until a pass has found no commit since: then the log begins again from its start, where no batch has begun meanwhile. */
const PASSES_MAX = 4;

/** A text, since a bundle has no second file that a thread could begin with. What fails here, the commits do themselves. */
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

/** For one database; its thread begins when it is needed for the first time. */
export class Checkpoints {
  readonly #path: string;
  #thread: Worker | undefined;
  #rows = 0;
  #isUnderWay = false;
  #isClosed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** A commit has been made, with about so many rows. Never throws: whoever made it would take it for one that failed. */
  committed(rows: number): void {
    this.#rows += rows;
    if (this.#rows < ROWS_MAX || this.#isUnderWay || this.#isClosed) return;
    this.#rows = 0;
    try {
      this.#thread ??= this.#begin();
    } catch {
      // Where the system has no thread left (ERR_WORKER_INIT_FAILED) commits do the work, and it is tried again in so many rows.
      return;
    }
    this.#isUnderWay = true;
    this.#thread.postMessage("begin");
  }

  /** Before the database is closed. What is under way ends by itself. */
  close(): void {
    this.#isClosed = true;
    void this.#thread?.terminate();
  }

  #begin(): Worker {
    const thread = new Worker(PROGRAM, { eval: true, workerData: this.#path, execArgv: [], env: {} });
    thread.on("message", (isTaken: boolean) => {
      this.#isUnderWay = false;
      // A disk that was full may have room now, which the log would otherwise take: the next commit has it tried again.
      if (!isTaken) this.#rows = ROWS_MAX;
    });
    // Without it commits do its work, as they did before it began.
    thread.on("error", () => {});
    // After the listeners, each of which would have the process wait for the thread.
    thread.unref();
    return thread;
  }
}
