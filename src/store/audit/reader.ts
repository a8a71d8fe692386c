/**
 * Reads an account for its audit, in bounded steps, and compares it with the ledger: it reads the figures of an
 * instant, walks the lines up to that instant, and runs every check on both.
 */

import type { AccountTag } from "../../values/key.ts";
import { errorText } from "../../values/program/error-text.ts";
import { type Store, StoreError } from "../contract.ts";
import { type AccountFigures, FIGURES_MAX, type FiguresAsk } from "../figures.ts";
import { LedgerWalk } from "../ledger/walk.ts";
import type { LedgerLine } from "../records.ts";
import { ACCOUNT_CHECKS, NAME_CHECKS } from "./checks.ts";
import { mustHaveMark } from "./named.ts";
import type { AccountSnapshot, Finding } from "./snapshot.ts";

export type AuditStore = Pick<
  Store,
  "getCode" | "findAccountName" | "readLedger" | "readFigures" | "listRecords" | "pageDays" | "pageUpstreamDays"
>;

/** The progress of an audit after a step. */
export interface AuditProgress {
  /** Number of the last line that was read. */
  readonly lines: number;
  /** Number of the last line when the audit began; undefined until it is known. */
  readonly linesMax: number | undefined;
  /** Why the last step gave nothing. The next step tries the same again. */
  readonly error?: StoreError;
}

/** One or more steps that give a T. */
export type ProgressSteps<T> = AsyncGenerator<AuditProgress, T, void>;

/** What a portion has besides its figures. */
type Portion = Partial<Pick<AccountSnapshot, "foundAs" | "codes" | "fields" | "groups">>;

/** Lines that one step reads and judges: some milliseconds of this process, less of the store. */
const PAGE_LINES = 50;
/**
 * Findings that are remembered, so that each is reported once. For an account with more findings, most are only counted
 * anyway.
 */
export const FOUND_MAX = 1_000;

/** The store has fewer lines than were read before: a failover has lost some, and the sums are void. */
export const STORE_OLDER = new Error("the store has fewer lines than were read before");

/** The store answers, and reports an error for this account's own records. */
class Unreadable extends Error {}

export class AccountReader {
  readonly store: AuditStore;
  readonly tag: AccountTag;
  readonly walk: LedgerWalk;
  /** Number of the last line when the audit began. */
  linesMax: number | undefined;
  /** Findings already reported: later portions find the same ones again. */
  readonly #found = new Set<string>();
  /** Lines that were read and are later than the instant of the figures. */
  #ahead: readonly LedgerLine[] = [];

  constructor(store: AuditStore, tag: AccountTag) {
    this.store = store;
    this.tag = tag;
    this.walk = new LedgerWalk(tag);
  }

  get #progress(): AuditProgress {
    return { lines: this.walk.seq, linesMax: this.linesMax };
  }

  /** One step of the store. While the store does not answer, each step is another try. */
  async *ask<T>(work: () => Promise<T>): ProgressSteps<T> {
    for (;;) {
      try {
        const answer = await work();
        yield this.#progress;
        return answer;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        if (error.outcome === "refused") throw new Unreadable(errorText(error.cause ?? error));
        yield { ...this.#progress, error };
      }
    }
  }

  async *figures(ask: FiguresAsk): ProgressSteps<AccountFigures> {
    const figures = yield* this.ask(() => this.store.readFigures(this.tag, ask));
    // Accounts are never removed.
    if (!figures) throw STORE_OLDER;
    return figures;
  }

  /** Walks to the instant of the figures, then runs every check on both. */
  async *judge(
    figures: AccountFigures,
    portion: Portion = {},
    found = (one: Finding) => this.find(one),
  ): ProgressSteps<void> {
    yield* this.walkTo(figures);
    const snapshot: AccountSnapshot = {
      ...{ foundAs: undefined, codes: new Map(), fields: [], groups: [] },
      ...portion,
      ...{ figures, lines: this.walk.tally.sums, archived: this.walk.tally.opening !== undefined },
    };
    for (const check of ACCOUNT_CHECKS) for (const finding of check(snapshot)) found(finding);
  }

  find({ check, what, line, about }: Finding): void {
    const key = JSON.stringify([check, line, about]);
    if (this.#found.has(key)) return;
    if (this.#found.size < FOUND_MAX) this.#found.add(key);
    this.walk.find(check, what, line, about);
  }

  async *walkTo({ lastLine, storeTimeMs }: AccountFigures): ProgressSteps<void> {
    if (lastLine < this.walk.seq) throw STORE_OLDER;
    while (this.walk.seq < lastLine) {
      const lines = yield* this.#nextLines();
      const beyond = lines.findIndex(({ seq }) => seq > lastLine);
      const count = beyond === -1 ? lines.length : beyond;
      for (const line of lines.slice(0, count)) this.walk.add(line);
      this.#ahead = lines.slice(count);
      yield* this.#named(storeTimeMs);
      // The former last line no longer exists: the gap is reported, and no line follows.
      if (count === 0) break;
    }
    this.walk.end();
    yield* this.#named(storeTimeMs);
  }

  async *#nextLines(): ProgressSteps<readonly LedgerLine[]> {
    if (this.#ahead.length > 0) return this.#ahead;
    const after = this.walk.seq;
    const lines = yield* this.ask(() => this.store.readLedger(this.tag, after, PAGE_LINES));
    // Lines with manually changed numbers must not make this loop endless.
    return (lines.at(-1)?.seq ?? 0) > after ? lines : [];
  }

  /** Looks up what keeps the walked requests and payments from being counted again, by the names in the lines. */
  async *#named(storeTimeMs: number): ProgressSteps<void> {
    const requests = this.walk.takeRequests().filter(({ atMs }) => mustHaveMark(atMs, storeTimeMs));
    const payments = this.walk.takePayments();
    for (let at = 0; at < Math.max(requests.length, payments.length); at += FIGURES_MAX) {
      const page = { requests: requests.slice(at, at + FIGURES_MAX), payments: payments.slice(at, at + FIGURES_MAX) };
      const figures = yield* this.figures({
        requests: page.requests.map(({ requestId }) => requestId),
        payments: page.payments.map(({ id }) => id),
      });
      // A store restored from an older copy has lost these together with their lines.
      if (figures.lastLine < this.walk.seq) throw STORE_OLDER;
      for (const check of NAME_CHECKS) for (const finding of check({ figures, ...page })) this.find(finding);
    }
  }
}
