/**
 * Delays the verdict that an account is missing or that the store refuses a charge. What a store has lost may come back
 * from the journal of another gateway, and what is broken may be repaired. Until then charges and writes wait; only
 * after a while does a charge become a dead letter.
 */
import { StoreError } from "../../store/contract.ts";
import type { SettleAsk } from "../../store/settlement.ts";
import type { Clock } from "../../values/time.ts";
import type { Answer, DeadLetter } from "../journal/dead-letters.ts";

/** How long an absence must last: by then a gateway that was down has restarted, or needs a person. */
const DOUBT_MS = 600_000;
/**
 * The maximum that counts between two checks. If this process and the one that can restore the account were both
 * stopped, the first to resume must not count the time of the stop.
 */
const BETWEEN_LOOKS_MS = 60_000;
/** Absences that are remembered. Further ones wait without end, because it is unknown how long they have lasted. */
const ABSENCES_MAX = 100_000;

/**
 * Something that a charge or a write needs is missing in the store now, or cannot be read. Others need not wait for it.
 */
export class DoubtfulError extends StoreError {
  constructor(what: string) {
    super("unavailable", `${what}; it may yet come back`, { outcome: "refused" });
  }
}

interface Doubt {
  readonly lookedAtMs: number;
  /** Time during which all checks failed. */
  readonly doubtedMs: number;
}

export class Absences {
  readonly #clock: Clock;
  readonly #doubts = new Map<string, Doubt>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts a failed check. @throws DoubtfulError while it is too early to conclude that `name`, an account or a record,
   * is gone.
   */
  doubt(name: string, what: string): void {
    if (!this.#isConfirmed(name)) throw new DoubtfulError(what);
  }

  /**
   * Judges the store's answer to a charge. If it says that the account is missing or refuses the charge, this counts a
   * failed check; any other answer shows that neither is the case.
   * @param letter the charge's dead letter for this answer, if it has one; the release of a hold of a missing account
   * has none.
   * @throws DoubtfulError while it is too early for a dead letter.
   */
  judge(
    { tag, requestId }: ChargeName,
    answer: Answer,
    letter: Pick<DeadLetter, "reason" | "detail"> | undefined,
  ): void {
    if (letter?.reason === "unknown_account") {
      this.doubt(tag, "the account of a charge is not there");
    } else if (letter?.reason === "refused") {
      // The whole account may be broken, or only this charge while others of the account are taken.
      const confirmed = [this.#isConfirmed(refusalsOf(tag)), this.#isConfirmed(requestId)];
      if (!confirmed.includes(true)) throw new DoubtfulError(letter.detail ?? "the store refuses a charge");
      this.forget(requestId);
    } else if (!("outcome" in answer) || answer.outcome !== "unknown_account") {
      this.taken({ tag, requestId });
    }
  }

  /** The store has the charge, and so its account. */
  taken({ tag, requestId }: ChargeName): void {
    // Usually nothing is remembered, and looking up three names takes 0.2 us.
    if (this.#doubts.size === 0) return;
    for (const name of [tag, refusalsOf(tag), requestId]) this.forget(name);
  }

  /** Forgets the absence of something that was found or is no longer needed. */
  forget(name: string): void {
    this.#doubts.delete(name);
  }

  /** Counts a failed check. @returns whether the absence has lasted long enough. */
  #isConfirmed(name: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { lookedAtMs, doubtedMs } = this.#doubts.get(name) ?? { lookedAtMs: nowMs, doubtedMs: 0 };
    const doubt = { lookedAtMs: nowMs, doubtedMs: doubtedMs + Math.min(nowMs - lookedAtMs, BETWEEN_LOOKS_MS) };
    if (this.#doubts.has(name) || this.#doubts.size < ABSENCES_MAX) this.#doubts.set(name, doubt);
    return doubt.doubtedMs >= DOUBT_MS;
  }
}

type ChargeName = Pick<SettleAsk, "tag" | "requestId">;

const refusalsOf = (tag: ChargeName["tag"]): string => `${tag} refuses`;
