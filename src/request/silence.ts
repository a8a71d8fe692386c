/**
 * How long a stream has shown nothing: where a model thinks out of sight, that time is what is known of its work until
 * the upstream's count comes.
 */
import type { AttemptCounts } from "../convert/exchange.ts";

/** What is known of a running stream. */
export interface SeenCounts extends AttemptCounts {
  /** Time in which nothing was shown since the last count, the first second of each silence left out. */
  readonly silentMs: number;
}

/**
 * What is known of a stream that nobody waits for any more: what its model thinks from then on is not the client's doing,
 * and a count that has grown since holds what was hidden before.
 * @param then what was known at that time.
 */
export function endedSilence(then: SeenCounts, now: SeenCounts): SeenCounts {
  const counted = (now.usage?.output ?? 0) > (then.usage?.output ?? 0);
  return withSilence(now, counted ? 0 : then.silentMs);
}

/** Member by member, since it is made for each piece of a stream: a spread takes half of the time of all that is done here. */
export function withSilence({ usage, final, produced, answeredBy }: AttemptCounts, silentMs: number): SeenCounts {
  return { usage, final, produced, answeredBy, silentMs };
}

/** So long the network, a line and the prompt take without a token being written. */
export const EXPECTED_MS = 1_000;

export class Silence {
  #sinceMs: number;
  #totalMs = 0;
  #deltas = 0;
  #counted = 0;
  /** Set while nobody reads: what has been written meanwhile waits unseen. */
  #heldBack = false;

  /** @param sinceMs when the upstream was asked. */
  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs;
  }

  /** The upstream has said something. */
  saw({ produced, usage }: AttemptCounts, nowMs: number): void {
    const counted = usage?.output ?? 0;
    // A count that has grown holds what was hidden before it.
    if (counted > this.#counted) {
      this.#counted = counted;
      this.#begin(0, nowMs);
    }
    if (produced.deltas === this.#deltas) return;
    this.#deltas = produced.deltas;
    this.#begin(this.ms(nowMs), nowMs);
  }

  #begin(totalMs: number, nowMs: number): void {
    this.#totalMs = totalMs;
    this.#sinceMs = nowMs;
  }

  /** Reading stops, or goes on. */
  holdBack(heldBack: boolean, nowMs: number): void {
    if (heldBack === this.#heldBack) return;
    this.#begin(this.ms(nowMs), nowMs);
    this.#heldBack = heldBack;
  }

  ms(nowMs: number): number {
    if (this.#heldBack) return this.#totalMs;
    return this.#totalMs + Math.max(0, nowMs - this.#sinceMs - EXPECTED_MS);
  }
}
