/**
 * The audit of settled marks: a request that counts as settled, with something charged or absorbed, has a line. Lines
 * lead to their marks (`named.ts`), but never to a mark without a line. So all marks are examined, in bounded steps.
 * The few that their own line does not confirm at once are looked for in the whole ledger of their account. The walk
 * also finds accounts that are missing from the list of accounts.
 */

import type { AccountTag } from "../../values/key.ts";
import { errorText } from "../../values/program/error-text.ts";
import { type Store, StoreError } from "../contract.ts";
import { FIGURES_MAX } from "../figures.ts";
import { accountId } from "../names.ts";
import { portions } from "./day-portions.ts";
import type { Finding } from "./snapshot.ts";

type MarkStore = Pick<Store, "pageMarks" | "readLedger" | "readFigures" | "listAccountNames">;

/** A finding about one account. */
export interface MarkFinding extends Finding {
  /** The account's name, or its id when the name cannot be read. */
  readonly account: string;
}

/** The progress of the audit after a step. */
export interface MarkProgress {
  /** Steps through the keys, and lines examined, so far. */
  readonly steps: number;
  /** At the end of a part: the findings in it. */
  readonly found?: readonly MarkFinding[];
  /** At the end of a part: where the next one begins; undefined after the last. */
  readonly next?: string | undefined;
  /** Why the step gave nothing. The next step tries the same again. */
  readonly error?: StoreError;
}

export type MarkSteps = AsyncGenerator<MarkProgress, void, void>;

/** Doubtful marks that are collected before ledgers are searched for them. */
const DOUBTS_MAX = 10_000;
const PAGE_LINES = 50;
const PAGE_NAMES = 200;

/**
 * @param tag audits one account; undefined: all accounts.
 * @param from the `next` of an earlier part.
 */
export async function* auditMarks(store: MarkStore, tag?: AccountTag, from?: string): MarkSteps {
  let steps = 0;
  /** While the store does not answer, each step is another try. */
  async function* ask<T>(work: () => Promise<T>): AsyncGenerator<MarkProgress, T, void> {
    for (;;) {
      try {
        const answer = await work();
        steps += 1;
        yield { steps };
        return answer;
      } catch (error) {
        if (!(error instanceof StoreError) || error.outcome === "refused") throw error;
        yield { steps, error };
      }
    }
  }

  /** Removes from `ids` each request that has a line. */
  async function* lookUp(of: AccountTag, ids: Set<string>): AsyncGenerator<MarkProgress, void, void> {
    for (let after = 0; ids.size > 0; ) {
      const from = after;
      const lines = yield* ask(() => store.readLedger(of, from, PAGE_LINES));
      for (const { kind, reference } of lines) if (kind === "usage" || kind === "absorbed") ids.delete(reference);
      after = lines.at(-1)?.seq ?? from;
      if (after === from) return;
    }
  }

  async function* judge(of: AccountTag, ids: Set<string>): AsyncGenerator<MarkProgress, MarkFinding[], void> {
    let account = accountId(of);
    const found: MarkFinding[] = [];
    const find = (check: string, what: string, about?: string) =>
      found.push({ account, check, line: undefined, about, what });
    try {
      // An unfinished change may still write the line; the account's own audit reports that.
      const before = yield* ask(() => store.readFigures(of, {}));
      account = before?.account.name || account;
      if (before?.unfinished) return [];
      yield* lookUp(of, ids);
      for (const requests of portions([...ids], FIGURES_MAX)) {
        // A mark that has expired meanwhile, or that a failover has lost together with its line, does not count.
        const figures = yield* ask(() => store.readFigures(of, { requests }));
        for (const id of requests) {
          if (figures?.unreadable.includes(`mark ${id}`)) {
            find("unreadable", `The settled mark of the request ${id} cannot be read.`, id);
          } else if (!figures || figures.marks.get(id) !== undefined) {
            find("mark_without_line", `The request ${id} counts as settled, but has no line.`, id);
          }
        }
      }
    } catch (error) {
      if (!(error instanceof StoreError) || error.outcome !== "refused") throw error;
      find(
        "unreadable",
        `The settled marks of the account cannot be compared with its ledger: ${errorText(error.cause ?? error)}.`,
      );
    }
    return found;
  }

  /**
   * `account_unlisted`: accounts that no name in the list of accounts leads to. A name in the list other than their own
   * counts as leading to them too.
   */
  async function* judgeUnlisted(names: Map<AccountTag, string>): AsyncGenerator<MarkProgress, MarkFinding[], void> {
    for (let after: string | undefined, more = names.size > 0; more; ) {
      const at: string | undefined = after;
      const page = yield* ask(() => store.listAccountNames(at, PAGE_NAMES));
      for (const { tag: listed } of page.items) names.delete(listed);
      after = page.next;
      more = after !== undefined && names.size > 0;
    }
    return [...names].map(([of, name]) => {
      const what = `No name in the list of accounts leads to ${accountId(of)}: a walk through all accounts misses it.`;
      const account = name || accountId(of);
      return { account, check: "account_unlisted", line: undefined, about: accountId(of), what };
    });
  }

  for (let cursor = from, first = true; first || cursor !== undefined; first = false) {
    const doubts = new Map<AccountTag, Set<string>>();
    const unlisted = new Map<AccountTag, string>();
    let count = 0;
    do {
      const at: string | undefined = cursor;
      const page = yield* ask(() => store.pageMarks(tag, at));
      for (const { tag: of, requestId } of page.items) {
        doubts.set(of, (doubts.get(of) ?? new Set()).add(requestId));
        count += 1;
      }
      for (const { tag: of, name } of page.unlisted ?? []) unlisted.set(of, name);
      cursor = page.next;
    } while (cursor !== undefined && count + unlisted.size < DOUBTS_MAX);
    const found = [...(yield* judgeUnlisted(unlisted))];
    for (const [of, ids] of doubts) found.push(...(yield* judge(of, ids)));
    yield { steps, found, next: cursor };
  }
}
