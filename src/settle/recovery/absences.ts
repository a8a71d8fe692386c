/**
 * What a store has lost may come back from the journal of another gateway, and what is broken in it may be mended. So a
 * missing account is not believed at once, nor that the store refuses a charge: charges and writes wait, and only after a
 * while does a charge become a dead letter.
 */
import { StoreError } from "../../store/contract.ts";
import type { SettleAsk } from "../../store/settlement.ts";
import type { Clock } from "../../values/time.ts";
import type { Answer, DeadLetter } from "../journal/dead-letters.ts";

/** How long an absence is doubted: a gateway that is down has restarted by then, or needs a person. */
const DOUBT_MS = 600_000;
/**
 * The most that counts of the time between two looks. When this process and the one that can bring the account back
 * were both stopped, the first to wake must not count that time as a search.
 */
const BETWEEN_LOOKS_MS = 60_000;
/** Absences that are remembered; further ones are doubted for ever, since it is unknown how long they have lasted. */
const ABSENCES_MAX = 100_000;

/** Something that a charge or a write needs is not in the store now, or cannot be read there: no other need wait for it. */
export class DoubtfulError extends StoreError {
  constructor(what: string) {
    super("unavailable", `${what}; it may yet come back`, { outcome: "refused" });
  }
}

interface Doubt {
  readonly lookedAtMs: number;
  /** For how long it has been looked for in vain. */
  readonly doubtedMs: number;
}

export class Absences {
  readonly #clock: Clock;
  readonly #doubts = new Map<string, Doubt>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws DoubtfulError while it is too early to believe that `name`, an account or a record, is gone. */
  doubt(name: string, what: string): void {
    if (!this.#isBelieved(name)) throw new DoubtfulError(what);
  }

  /**
   * Doubts that the account of a charge is gone, or that the store refuses the charge for good; anything else that the store
   * says shows that neither is so. @param letter the charge's where it has one for this answer; a hold that is given back to an
   * account that is gone has none. @throws DoubtfulError while it is too early for a dead letter.
   */
  judge(
    { tag, requestId }: ChargeName,
    answer: Answer,
    letter: Pick<DeadLetter, "reason" | "detail"> | undefined,
  ): void {
    if (letter?.reason === "unknown_account") {
      this.doubt(tag, "the account of a charge is not there");
    } else if (letter?.reason === "refused") {
      // The account may be broken whole, and a charge by itself where others of the account are taken.
      const believed = [this.#isBelieved(refusalsOf(tag)), this.#isBelieved(requestId)];
      if (!believed.includes(true)) throw new DoubtfulError(letter.detail ?? "the store refuses a charge");
      this.forget(requestId);
    } else if (!("outcome" in answer) || answer.outcome !== "unknown_account") {
      this.taken({ tag, requestId });
    }
  }

  /** The store has the charge, and so its account. */
  taken({ tag, requestId }: ChargeName): void {
    // Mostly nothing is doubted, and to look for three names takes 0.2 us.
    if (this.#doubts.size === 0) return;
    for (const name of [tag, refusalsOf(tag), requestId]) this.forget(name);
  }

  /** It is there, or no longer asked for. */
  forget(name: string): void {
    this.#doubts.delete(name);
  }

  /** Counts a look in vain. */
  #isBelieved(name: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { lookedAtMs, doubtedMs } = this.#doubts.get(name) ?? { lookedAtMs: nowMs, doubtedMs: 0 };
    const doubt = { lookedAtMs: nowMs, doubtedMs: doubtedMs + Math.min(nowMs - lookedAtMs, BETWEEN_LOOKS_MS) };
    if (this.#doubts.has(name) || this.#doubts.size < ABSENCES_MAX) this.#doubts.set(name, doubt);
    return doubt.doubtedMs >= DOUBT_MS;
  }
}

type ChargeName = Pick<SettleAsk, "tag" | "requestId">;

const refusalsOf = (tag: ChargeName["tag"]): string => `${tag} refuses`;
