/** The embedded store in memory, with batches of settlements that the test ends. */
import { DatabaseSync } from "node:sqlite";
import type { Store } from "../../../src/store/contract.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import { Database } from "../../../src/store/embedded/database/database.ts";
import { SCHEMA_STEPS } from "../../../src/store/embedded/database/schema.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";
import { NOTICES } from "./benches.ts";
import type { Bench } from "./contract.ts";

/** A reference that is checked when a transaction is committed. */
const PARTS =
  "CREATE TABLE u (id INTEGER PRIMARY KEY); CREATE TABLE t (x REFERENCES u (id) DEFERRABLE INITIALLY DEFERRED)";

export class GatheringBench implements Bench {
  readonly raw = new DatabaseSync(":memory:");
  readonly db: Database;
  readonly store: Store;
  /** Work to do at the end of the batch. */
  readonly #later: (() => void)[] = [];
  #nowMs = 1_000_000;

  /** @param atOnce each settlement is committed by itself, as after a batch that could not be written. */
  constructor({ atOnce = false } = {}) {
    this.raw.exec(`${PARTS}; ${SCHEMA_STEPS.join(";")}; PRAGMA foreign_keys = ON`);
    this.db = new Database(this.raw, undefined, atOnce ? undefined : (work) => void this.#later.push(work));
    this.store = embeddedOver(new Context(this.db, () => this.#nowMs, NOTICES));
  }

  readonly nowMs = () => this.#nowMs;

  readonly setTime = (epochMs: number) => {
    this.#nowMs = epochMs;
  };

  readonly close = () => this.store.close();

  /** Ends the batch. @returns the number of commits that were waiting. */
  readonly end = (): number => {
    const works = this.#later.splice(0);
    for (const work of works) work();
    return works.length;
  };

  /** Makes the commit of this batch fail, as a full disk may. */
  readonly failCommit = (): Promise<unknown> => this.gather(() => this.db.run("INSERT INTO t (x) VALUES (7)"));

  /** Makes the writes of this batch fail before its commit. */
  readonly failWrites = (): Promise<unknown> =>
    this.gather(() => this.db.run("INSERT INTO ledger (tag) VALUES (NULL)"));

  /** Adds a write to the batch of settlements. @returns its answer, or the error. */
  async gather(write: () => void): Promise<unknown> {
    try {
      return await this.db.commitTogether(() => this.db.batch.addWrite(write));
    } catch (error) {
      return error;
    }
  }

  /** The number of charge lines in the table, whoever caused them to be written. */
  readonly lines = (): number =>
    this.raw.prepare("SELECT count(*) AS n FROM ledger WHERE kind = 'usage'").get()?.n as number;
}
