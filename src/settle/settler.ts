/**
 * Stage settle: every admitted request ends here exactly once. FINAL goes to the journal, the settlement is sent to the
 * store on the connection that later admissions use, and sent again until the store has answered.
 */
import { type SettleAnswer, type SettleAsk, type Store, StoreError } from "../store/contract.ts";
import type { AccountTag } from "../values/key.ts";
import type { Clock } from "../values/time.ts";
import type { Journal } from "./journal.ts";

export interface SettlerParts {
  readonly store: Pick<Store, "settle">;
  readonly journal: Journal;
  readonly clock: Clock;
  /** Told of every answer, for metrics and alarms. */
  readonly onSettled: (ask: SettleAsk, answer: SettleAnswer) => void;
  /** Told of every try that the store did not answer. */
  readonly onDelay: (error: unknown) => void;
}

export interface Settler {
  /** Makes the charge durable, then sends it. Resolves when the client may be told that its answer is complete. */
  settle(ask: SettleAsk): Promise<void>;
  /** Resolves when the account's charges that are under way have been answered; undefined when there are none. */
  unsettled(tag: AccountTag): Promise<void> | undefined;
  /** Settlements that the store has not answered yet. */
  pending(): number;
  /** Resolves when nothing is under way, or after `withinMs`. */
  drain(withinMs: number): Promise<void>;
}

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 5_000;

export function createSettler(parts: SettlerParts): Settler {
  const underWay = new Map<AccountTag, Set<Promise<void>>>();
  let pending = 0;
  let idle: (() => void)[] = [];

  async function untilAnswered(ask: SettleAsk): Promise<void> {
    for (let waitMs = RETRY_FIRST_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)) {
      try {
        const answer = await parts.store.settle(ask);
        parts.journal.ack(ask.requestId);
        parts.onSettled(ask, answer);
        return;
      } catch (error) {
        // A defect of ours would repeat for ever and hold the account back; it is told once and left to the journal.
        parts.onDelay(error);
        if (!(error instanceof StoreError)) return;
        await new Promise<void>((resolve) => parts.clock.after(waitMs, resolve));
      }
    }
  }

  function track(tag: AccountTag, work: Promise<void>): void {
    const works = underWay.get(tag) ?? new Set();
    underWay.set(tag, works.add(work));
    pending++;
    void work.finally(() => {
      works.delete(work);
      if (works.size === 0) underWay.delete(tag);
      pending--;
      if (pending > 0) return;
      for (const wake of idle) wake();
      idle = [];
    });
  }

  return {
    async settle(ask) {
      let durable: () => void = () => {};
      // The account counts as unsettled from here on, so that its next request knows to wait for this one (promise 5).
      const finalised = new Promise<void>((resolve) => {
        durable = resolve;
      });
      const final = parts.journal.final(ask).finally(durable);
      track(
        ask.tag,
        finalised.then(() => untilAnswered(ask)),
      );
      await final;
      // One turn of the microtask queue lets the settlement be written to the store's connection before the client's.
      await Promise.resolve();
    },
    unsettled(tag) {
      const works = underWay.get(tag);
      return works && Promise.all(works).then(() => {});
    },
    pending: () => pending,
    drain(withinMs) {
      if (pending === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = parts.clock.after(withinMs, resolve);
        idle.push(() => {
          cancel();
          resolve();
        });
      });
    },
  };
}
