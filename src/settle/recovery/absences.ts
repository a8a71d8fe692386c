/**
 * What a store has lost may come back from the journal of another gateway. So nobody believes at once that an account is
 * not there: its charges and writes wait, and only after a while does a charge become a dead letter.
 */
import { StoreError } from "../../store/contract.ts";
import type { Clock } from "../../values/time.ts";

/** How long an absence is doubted: a gateway that is down has restarted by then, or needs a person. */
const DOUBT_MS = 600_000;
/** Absences that are remembered; further ones are doubted for ever, since nothing tells how long they have lasted. */
const ABSENCES_MAX = 100_000;

/** Something that a charge or a write needs is not in the store now. */
export class AbsentError extends StoreError {
  constructor(what: string) {
    super("unavailable", `${what}; another gateway's journal may bring it back`);
  }
}

export class Absences {
  readonly #clock: Clock;
  readonly #sinceMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @throws AbsentError while it is too early to believe that `name`, an account or a record, is gone. */
  doubt(name: string, what: string): void {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#sinceMs.get(name) ?? nowMs;
    if (this.#sinceMs.size < ABSENCES_MAX) this.#sinceMs.set(name, sinceMs);
    if (nowMs - sinceMs < DOUBT_MS) throw new AbsentError(what);
  }

  /** It is there. */
  found(name: string): void {
    this.#sinceMs.delete(name);
  }
}
