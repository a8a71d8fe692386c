/**
 * Stage settle: every admitted request ends here exactly once. FINAL goes to the journal. The settlement goes to the
 * store on the connection that later admissions use, and is retried until the store answers.
 */

import { type Store, StoreError } from "../store/contract.ts";
import type { SettleAnswer, SettleAsk } from "../store/settlement.ts";
import { TransientList, TransientMap } from "../values/collections/transient.ts";
import type { AccountTag } from "../values/key.ts";
import type { RequestId } from "../values/request-id.ts";
import { afterTurn, type Clock } from "../values/time.ts";
import { type Answer, type DeadLetters, letterFor } from "./journal/dead-letters.ts";
import type { Leftover } from "./journal/startup.ts";
import type { Journal } from "./journal.ts";
import type { Absences } from "./recovery/absences.ts";

interface SettlerParts {
  readonly store: Pick<Store, "settle">;
  readonly journal: Pick<Journal, "final" | "ack">;
  readonly deadLetters: Pick<DeadLetters, "add">;
  readonly clock: Clock;
  /**
   * Restores what is known of an account to a store that has lost it. Rejects with StoreError while that is not
   * possible. Without it only the store is asked.
   */
  readonly restored?: () => Promise<void>;
  /** Delays the verdict that an account is missing. Without it the store's first answer counts. */
  readonly absences?: Absences;
  /** Between 0 and 1; default: Math.random. */
  readonly random?: () => number;
  /** Called with every answer, for metrics. */
  readonly onSettled: (ask: SettleAsk, answer: SettleAnswer) => void;
  /** Called once for each charge that the store, or the dead-letter file, did not take at the first attempt. */
  readonly onDelay: (error: unknown) => void;
  /** Called for a charge that the journal could not take: it is only in memory until the store has it. */
  readonly onUnrecorded: (ask: SettleAsk, error: unknown) => void;
}

export interface Settler {
  /**
   * Makes the charge durable, then sends it. Resolves when the client may get the end of its answer.
   * @param isAwaited whether a client waits for that. Otherwise the charge queues with the retries.
   */
  settle(ask: SettleAsk, isAwaited?: boolean): Promise<void>;
  /** Settles a charge that an earlier process left behind. */
  resume(leftover: Leftover): Resumed;
  /**
   * Resolves when the store has answered all charges of the account that are under way; undefined if there are none.
   */
  unsettled(tag: AccountTag): Promise<void> | undefined;
  /** Settlements that the store has not answered yet. */
  pending(): number;
  /** Charges that are neither in the journal nor in the store. */
  unrecorded(): readonly SettleAsk[];
  /** Resolves when nothing is under way, or after `withinMs`. */
  drain(withinMs: number): Promise<void>;
}

interface Resumed {
  /**
   * Resolves when the store has answered, or has refused this one charge: that is retried, and no other charge needs to
   * wait for it.
   */
  readonly passed: Promise<void>;
  /** Resolves when the store has answered. */
  readonly answered: Promise<void>;
}

/** A charge on its way into the journal and to the store. */
interface Recorded {
  /** Resolves when the charge is in the journal. */
  readonly final: Promise<void>;
  /** Resolves when the store has been asked once; for callers whose `final` rejected. */
  readonly tried: () => Promise<void> | undefined;
  /** Resolves when the store has answered. */
  readonly answered: Promise<void>;
}

/** How a charge is sent. */
interface Sending {
  /** Whether a client gets the end of its answer after the first attempt. */
  readonly isAwaited?: boolean;
  /** The write to the journal; sending waits for it. */
  readonly final?: Promise<void>;
  /** Called if the journal has not taken the charge. */
  readonly onUnrecorded?: (error: unknown) => void;
  /** Called at the end of each attempt, with the error if it failed. */
  readonly onTried?: (error?: unknown) => void;
}

const RETRY_FIRST_MS = 50;
/**
 * A circuit breaker may need two and a half seconds to notice that the store is back. With this maximum everything
 * settles within five seconds (docs/failure-model.md invariant 28).
 */
const RETRY_MAX_MS = 2_000;

/**
 * The store's client collects the commands of one turn of the event loop and writes them in the check phase. Continuing
 * only after that puts the settlement on the wire before the client's last bytes (ARCHITECTURE.md promise 5).
 */
function writtenOut(clock: Clock): Promise<void> {
  return new Promise((resolve) => void afterTurn(clock, resolve));
}

export function createSettler(parts: SettlerParts): Settler {
  const { store, journal, clock, random = Math.random } = parts;
  const underWay = new TransientMap<AccountTag, TransientList<Promise<void>>>();
  const unrecorded = new Map<RequestId, SettleAsk>();
  let pending = 0;
  const idle: (() => void)[] = [];

  /**
   * Sends the charge as soon as it is durable, in the same turn and so before the client's last bytes. It awaits the
   * journal's promise directly, because chaining another promise costs 0.2 us.
   */
  async function untilAnswered(ask: SettleAsk, orphan: boolean, sending: Sending): Promise<void> {
    const { final, onTried, isAwaited = false } = sending;
    try {
      if (final) await final;
    } catch (error) {
      sending.onUnrecorded?.(error);
    }
    for (let waitMs = RETRY_FIRST_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)) {
      try {
        await charge(ask, orphan, isAwaited && waitMs === RETRY_FIRST_MS);
        unrecorded.delete(ask.requestId);
        onTried?.();
        return;
      } catch (error) {
        onTried?.(error);
        const unavailable = error instanceof StoreError;
        if (!unavailable || waitMs === RETRY_FIRST_MS) parts.onDelay(error);
        if (!unavailable) return;
      }
      // With jitter, so that the charges of an outage are not all retried at the same moment.
      await new Promise<void>((resolve) => clock.after(waitMs * (0.5 + random() / 2), resolve));
    }
  }

  /**
   * One attempt and the handling of its answer, in one function: awaiting a second one costs 0.3 us for each charge.
   */
  async function charge(ask: SettleAsk, orphan: boolean, isAwaited: boolean): Promise<void> {
    let answer: Answer;
    try {
      answer = await store.settle(ask, isAwaited);
      if (answer.outcome === "unknown_account" && parts.restored) {
        await parts.restored();
        answer = await store.settle(ask);
      }
    } catch (error) {
      if (error instanceof StoreError) throw error;
      // Retrying would repeat our own defect forever and block the account.
      answer = { defect: String(error) };
    }
    const letter = letterFor(ask, orphan, answer);
    parts.absences?.judge(ask, answer, letter);
    if (letter) await parts.deadLetters.add(letter);
    journal.ack(ask.requestId, letter ? "dead" : "settled");
    if ("outcome" in answer) parts.onSettled(ask, answer);
  }

  function track(tag: AccountTag, work: Promise<void>): void {
    const works = underWay.get(tag) ?? new TransientList();
    if (works.size === 0) underWay.set(tag, works);
    const place = works.add(work);
    pending++;
    const end = (): void => {
      works.delete(place);
      if (works.size === 0) underWay.delete(tag);
      pending--;
      if (pending > 0) return;
      for (const wake of idle.splice(0)) wake();
    };
    // Not `finally`, which makes four promises.
    void work.then(end, (defect) => {
      end();
      throw defect;
    });
  }

  /**
   * If the journal cannot take the charge, the store must have been asked before the client gets its end (invariant
   * 29).
   */
  function record(ask: SettleAsk, orphan: boolean, sending: Pick<Sending, "isAwaited" | "onTried">): Recorded {
    let tried: PromiseWithResolvers<void> | undefined;
    const final = journal.final(ask, orphan);
    const answered = untilAnswered(ask, orphan, {
      final,
      isAwaited: sending.isAwaited,
      onUnrecorded(error) {
        tried = Promise.withResolvers();
        unrecorded.set(ask.requestId, ask);
        parts.onUnrecorded(ask, error);
      },
      onTried(error) {
        tried?.resolve();
        sending.onTried?.(error);
      },
    });
    // From here on the account counts as unsettled, so its next request waits for this charge (promise 5).
    track(ask.tag, answered);
    return { final, tried: () => tried?.promise, answered };
  }

  return {
    async settle(ask, isAwaited = true) {
      const { final, tried } = record(ask, false, { isAwaited });
      try {
        await final;
      } catch {
        await tried();
      }
      await writtenOut(clock);
    },
    resume({ ask, final, orphan }) {
      const passed = Promise.withResolvers<void>();
      const onTried = (error?: unknown): void => {
        if (error instanceof StoreError && error.outcome === "refused") passed.resolve();
      };
      const answered = final ? untilAnswered(ask, orphan, { onTried }) : record(ask, true, { onTried }).answered;
      if (final) track(ask.tag, answered);
      return { passed: Promise.race([passed.promise, answered]), answered };
    },
    unsettled(tag) {
      const works = underWay.get(tag);
      return works && Promise.all(works.values()).then(() => {});
    },
    pending: () => pending,
    unrecorded: () => [...unrecorded.values()],
    drain(withinMs) {
      if (pending === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = clock.after(withinMs, resolve);
        idle.push(() => {
          cancel();
          resolve();
        });
      });
    },
  };
}
