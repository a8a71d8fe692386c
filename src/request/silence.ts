/**
 * How long a stream has shown nothing. If a model thinks unseen, this time is all that is known of its work until the
 * upstream's count arrives.
 */
import type { AttemptCounts } from "../convert/exchange.ts";

/** What is known of a running stream. */
export interface SeenCounts extends AttemptCounts {
  /** Time in which nothing was shown since the last count, without the first second of each silence. */
  readonly silentMs: number;
  /** Whether the upstream gave the count after the stream had ended. */
  readonly countedLater?: boolean | undefined;
}

/**
 * The counts of a stream that the client no longer waits for. What the model thinks from then on is not caused by the
 * client, and a count that has grown since includes what was hidden before.
 * @param then the counts at that time.
 */
export function endedSilence(then: SeenCounts, now: SeenCounts): SeenCounts {
  const counted = (now.usage?.output ?? 0) > (then.usage?.output ?? 0);
  return withSilence(now, counted ? 0 : then.silentMs);
}

/** Member by member, because this runs for each chunk of a stream: a spread takes half of the total time here. */
export function withSilence({ usage, final, produced, answeredBy }: AttemptCounts, silentMs: number): SeenCounts {
  return { usage, final, produced, answeredBy, silentMs };
}

/** The time that the network, a queue and the prompt take without a token being written. */
export const EXPECTED_MS = 1_000;

export class Silence {
  #sinceMs: number;
  #totalMs = 0;
  #deltas = 0;
  #counted = 0;
  /** Set while reading is paused: what is written in that time waits unread. */
  #heldBack = false;

  /** @param sinceMs when the upstream was asked. */
  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs;
  }

  /** The upstream has sent something. */
  saw({ produced, usage }: AttemptCounts, nowMs: number): void {
    const counted = usage?.output ?? 0;
    // A count that has grown includes what was hidden before it.
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

  /** Reading is paused, or resumes. */
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
