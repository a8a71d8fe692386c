/**
 * What a store has lost may come back from the journal of another gateway. So a missing account is not believed at
 * once: its charges and writes wait, and only after a while does a charge become a dead letter.
 */
import { StoreError } from "../../store/contract.ts";
import type { Clock } from "../../values/time.ts";

/** How long an absence is doubted: a gateway that is down has restarted by then, or needs a person. */
const DOUBT_MS = 600_000;
/**
 * The most that counts of the time between two looks. When this process and the one that can bring the account back
 * were both stopped, the first to wake must not count that time as a search.
 */
const BETWEEN_LOOKS_MS = 60_000;
/** Absences that are remembered; further ones are doubted for ever, since it is unknown how long they have lasted. */
const ABSENCES_MAX = 100_000;

/** Something that a charge or a write needs is not in the store now. */
export class AbsentError extends StoreError {
  constructor(what: string) {
    super("unavailable", `${what}; another gateway's journal may bring it back`);
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

  /** @throws AbsentError while it is too early to believe that `name`, an account or a record, is gone. */
  doubt(name: string, what: string): void {
    const nowMs = this.#clock.monotonicMs();
    const { lookedAtMs, doubtedMs } = this.#doubts.get(name) ?? { lookedAtMs: nowMs, doubtedMs: 0 };
    const doubt = { lookedAtMs: nowMs, doubtedMs: doubtedMs + Math.min(nowMs - lookedAtMs, BETWEEN_LOOKS_MS) };
    if (this.#doubts.has(name) || this.#doubts.size < ABSENCES_MAX) this.#doubts.set(name, doubt);
    if (doubt.doubtedMs < DOUBT_MS) throw new AbsentError(what);
  }

  /** It is there. */
  found(name: string): void {
    this.#doubts.delete(name);
  }
}
