/**
 * One history of the modelled store: the real embedded store on tables in memory, and the list of operations that led
 * to its state. A failover keeps a prefix of that list and executes it again on empty tables, each operation at its
 * original time. This is prefix consistency, as Redis has it for a slot (docs/failure-model.md invariant 36).
 */

import type { AdmitAsk } from "../../../src/store/admission.ts";
import type { Store } from "../../../src/store/contract.ts";
import { Context } from "../../../src/store/embedded/context.ts";
import type { Database } from "../../../src/store/embedded/database/database.ts";
import { memoryDatabase } from "../../../src/store/embedded/database/open.ts";
import { embeddedOver } from "../../../src/store/embedded/store.ts";

export type Operation = keyof Store;

/** Operations that change something. The others need not be repeated. */
const WRITES: ReadonlySet<Operation> = new Set<Operation>([
  "admit",
  "settle",
  "createAccount",
  "setPlan",
  "setNotifyBelow",
  "addNotice",
  "takeNotice",
  "changeAccount",
  "renameAccount",
  "closeAccount",
  "createKey",
  "changeKey",
  "rotateKey",
  "revokeKey",
  "credit",
  "grant",
  "createCodes",
  "voidCode",
  "voidCodes",
  "redeem",
  "keepSignIn",
  "takeSignIn",
  "dropSignIn",
  "dropSignIns",
  "extend",
  "countEpoch",
  "stopEpoch",
  "renewEpoch",
]);
/** Operations that the embedded store does not force to the disk. */
const LAZY: ReadonlySet<Operation> = new Set<Operation>([
  "admit",
  "settle",
  "extend",
  "countEpoch",
  "stopEpoch",
  "renewEpoch",
]);

export interface Done {
  readonly operation: Operation;
  readonly values: readonly unknown[];
  /** The store's clock, and exact time. */
  readonly storeMs: number;
  readonly trueMs: number;
  readonly answer: unknown;
}

/** Tables are expensive to create and cheap to empty, so they are reused. */
const spare: Database[] = [];

export class Replica {
  readonly #clock: () => number;
  #replayedMs: number | undefined;
  #db = emptyTables();
  #context: Context;
  #store: Store;
  #history: Done[] = [];

  /** @param clock the store's clock, milliseconds since the epoch. */
  constructor(clock: () => number) {
    this.#clock = clock;
    // The store reads the clock when it is opened.
    this.#context = this.#newContext();
    this.#store = embeddedOver(this.#context);
  }

  get context(): Context {
    return this.#context;
  }

  get store(): Store {
    return this.#store;
  }

  get history(): readonly Done[] {
    return this.#history;
  }

  async run(operation: Operation, values: readonly unknown[], trueMs: number): Promise<unknown> {
    const storeMs = this.#clock();
    const answer = await this.#call(operation, values);
    if (WRITES.has(operation)) this.#history.push({ operation, values, storeMs, trueMs, answer });
    return answer;
  }

  /** Forgets everything from operation number `kept` on. @returns the lost operations. */
  async keep(kept: number): Promise<readonly Done[]> {
    const lost = this.#history.slice(kept);
    if (lost.length > 0) await this.become(this.#history.slice(0, kept));
    return lost;
  }

  /** Replaces the data by a backup. */
  async become(again: readonly Done[]): Promise<void> {
    spare.push(this.#db);
    this.#db = emptyTables();
    this.forgetLive();
    this.#history = [];
    for (const done of again) {
      this.#replayedMs = done.storeMs;
      await this.#call(done.operation, done.values);
      this.#history.push(done);
    }
    this.#replayedMs = undefined;
  }

  /** Forgets what an embedded store keeps only in the memory of its process. */
  forgetLive(): void {
    this.#context = this.#newContext();
    this.#store = embeddedOver(this.#context);
  }

  /** The length of the history that is certainly on an embedded store's disk: up to its last forced commit. */
  forced(): number {
    const index = this.#history.findLastIndex(({ operation }) => !LAZY.has(operation));
    return index + 1;
  }

  /** Returns the tables for reuse. */
  dispose(): void {
    spare.push(this.#db);
  }

  #newContext(): Context {
    return new Context(this.#db, () => this.#replayedMs ?? this.#clock());
  }

  #call(operation: Operation, values: readonly unknown[]): Promise<unknown> {
    const call = this.#store[operation] as (...values: readonly unknown[]) => Promise<unknown>;
    // The simulated server may get an admission twice, or after its withdrawal, so the sender cannot claim that it is
    // the first.
    if (operation === "admit") return call.call(this.#store, { ...(values[0] as AdmitAsk), fresh: false });
    return call.apply(this.#store, [...values]);
  }
}

function emptyTables(): Database {
  const used = spare.pop();
  if (!used) return memoryDatabase();
  used.commitNormal(() => {
    for (const { name } of used.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'identity'")) {
      used.run(`DELETE FROM ${name}`);
    }
  });
  return used;
}
