/**
 * Stage settle: every admitted request ends here exactly once. FINAL goes to the journal, the settlement is sent to the
 * store on the connection that later admissions use, and sent again until the store has answered.
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
   * Resolves when a store that has lost an account has been given back what is known of it; rejects with StoreError while
   * that cannot be done. Without it only the store is asked.
   */
  readonly restored?: () => Promise<void>;
  /** Doubts that an account is not there; without it that is believed at once. */
  readonly absences?: Absences;
  /** Between 0 and 1; the machine's unless given. */
  readonly random?: () => number;
  /** Called with every answer, for metrics. */
  readonly onSettled: (ask: SettleAsk, answer: SettleAnswer) => void;
  /** Called once for each charge that the store, or the disk of the dead letters, did not take at the first try. */
  readonly onDelay: (error: unknown) => void;
  /** Called for a charge that the journal could not take: it is in memory only until the store has it. */
  readonly onUnrecorded: (ask: SettleAsk, error: unknown) => void;
}

export interface Settler {
  /**
   * Makes the charge durable, then sends it. Resolves when the client may get the end of its answer.
   * @param isAwaited whether a client waits for that; the charge stands in line with those that are sent again where none does.
   */
  settle(ask: SettleAsk, isAwaited?: boolean): Promise<void>;
  /** Settles what an earlier process left. */
  resume(leftover: Leftover): Resumed;
  /** Resolves when the account's charges that are under way have been answered; undefined when there are none. */
  unsettled(tag: AccountTag): Promise<void> | undefined;
  /** Settlements that the store has not answered yet. */
  pending(): number;
  /** Charges that are neither in the journal nor in the store. */
  unrecorded(): readonly SettleAsk[];
  /** Resolves when nothing is under way, or after `withinMs`. */
  drain(withinMs: number): Promise<void>;
}

interface Resumed {
  /** Resolves when the store has answered, or has refused this one charge: that is tried again and need not be waited for. */
  readonly passed: Promise<void>;
  /** Resolves when the store has answered. */
  readonly answered: Promise<void>;
}

/** A charge on its way into the journal and to the store. */
interface Recorded {
  /** The journal's word. */
  readonly final: Promise<void>;
  /** Resolves when the store has been asked once, for who has seen `final` reject. */
  readonly tried: () => Promise<void> | undefined;
  /** Resolves when the store has answered. */
  readonly answered: Promise<void>;
}

/** What a charge is sent with. */
interface Sending {
  /** A client gets its end behind the first try. */
  readonly isAwaited?: boolean;
  /** The journal's word, which is waited for. */
  readonly final?: Promise<void>;
  /** Called where the journal has not taken it. */
  readonly onUnrecorded?: (error: unknown) => void;
  /** Called at the end of each try, with the error of one that failed. */
  readonly onTried?: (error?: unknown) => void;
}

const RETRY_FIRST_MS = 50;
/**
 * A breaker may need two seconds and a half to see that the store is back; everything settles within five
 * (docs/failure-model.md invariant 28).
 */
const RETRY_MAX_MS = 2_000;

/**
 * The store's client gathers the commands of one turn of the loop and writes them in its check phase. Going on after that
 * puts the settlement on the wire before the client's last bytes (ARCHITECTURE.md promise 5).
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
   * Sends the charge as soon as it is durable, in the turn in which that is known: before the client's last bytes. It waits for the
   * journal itself: a promise that follows another takes 0.2 us.
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
        const away = error instanceof StoreError;
        if (!away || waitMs === RETRY_FIRST_MS) parts.onDelay(error);
        if (!away) return;
      }
      // With jitter: the charges of an outage do not come back in step.
      await new Promise<void>((resolve) => clock.after(waitMs * (0.5 + random() / 2), resolve));
    }
  }

  /** One try, in one step with its end: a function that waits for another costs 0.3 us, and each charge has a try. */
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
      // A defect of ours would repeat for ever and hold the account back.
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
    // In place of `finally`, which makes four promises.
    void work.then(end, (defect) => {
      end();
      throw defect;
    });
  }

  /** When the journal cannot take the charge the store must have been asked first (invariant 29). */
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
    // The account counts as unsettled from here on, so that its next request knows to wait for this one (promise 5).
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
