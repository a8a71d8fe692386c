/**
 * A stream whose client has left, read on for its upstream's count: as long as that costs less than what is in doubt, and
 * never beyond what was set aside (docs/decisions/what-leaving-costs.md).
 */
import type { StreamConverter } from "../convert/exchange.ts";
import type { AccountTag } from "../values/key.ts";
import type { Clock } from "../values/time.ts";
import type { SeenCounts } from "./silence.ts";

/** What becomes of the upstream when the client leaves. */
export interface Leaving {
  /** How long it is read on at most; Infinity: until it ends. */
  readonly forMs: number;
  /** How much it may say meanwhile. */
  readonly bytesMax: number;
  /** What reading on may cost: so many tokens, and how many of them a second of silence may hide. */
  readonly doubt: { readonly tokens: number; readonly perS: number } | undefined;
  /** Whether what has been set aside still covers the reply. */
  covers(counts: SeenCounts): boolean;
  /** Called when the stream is read on, with a function that ends that. @returns to be called when it has ended. */
  begun(end: () => void): () => void;
}

/** How often a silent upstream is looked at. */
const LOOK_MS = 250;
const MS_PER_S = 1_000;

export class ReadOn {
  readonly #leaving: Leaving;
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  readonly #end: () => void;
  readonly #done: () => void;
  /** What was known when the client left. */
  readonly #left: SeenCounts;
  readonly #leftAtMs: number;
  #tokens: number;
  #shownAtMs: number;
  #bytes = 0;
  #cancelLook = () => {};

  /** @param end called when it has gone on for long enough. */
  constructor(leaving: Leaving, left: SeenCounts, clock: Pick<Clock, "after" | "monotonicMs">, end: () => void) {
    this.#leaving = leaving;
    this.#left = left;
    this.#clock = clock;
    this.#end = end;
    this.#tokens = left.produced.tokens;
    this.#leftAtMs = clock.monotonicMs();
    this.#shownAtMs = this.#leftAtMs;
    this.#done = leaving.begun(end);
    this.#lookLater();
  }

  #lookLater(): void {
    this.#cancelLook = this.#clock.after(LOOK_MS, () => {
      if (this.#isEnough(this.#tokens)) this.#end();
      else this.#lookLater();
    });
  }

  /** Whether reading on may end, after so many more bytes and in the stream's present state. */
  isOver(bytes: number, { ended, fault }: Pick<StreamConverter, "ended" | "fault">, counts: SeenCounts): boolean {
    this.#bytes += bytes;
    if (counts.produced.tokens > this.#tokens) this.#shownAtMs = this.#clock.monotonicMs();
    this.#tokens = counts.produced.tokens;
    if (counts.final || ended || fault !== undefined) return true;
    return this.#bytes > this.#leaving.bytesMax || !this.#leaving.covers(counts) || this.#isEnough(this.#tokens);
  }

  /** Whether it costs as much by now as it could save. */
  #isEnough(tokens: number): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { doubt, forMs } = this.#leaving;
    if (nowMs - this.#leftAtMs >= forMs) return true;
    if (!doubt) return false;
    const hidden = ((nowMs - this.#shownAtMs) / MS_PER_S) * doubt.perS;
    return tokens - this.#left.produced.tokens + hidden >= doubt.tokens;
  }

  stop(): void {
    this.#cancelLook();
    this.#done();
  }
}

/*
 * Streams whose client has left and which are read on for their bill. Their holds are still set aside: when the same
 * account asks again and is short, they end at once with what is known of them (ARCHITECTURE.md promise 5).
 */

export class LeftStreams {
  readonly #byAccount = new Map<AccountTag, Set<() => void>>();

  /**
   * @param end ends the stream; its charge is under way when this returns.
   * @returns takes the stream out again.
   */
  add(tag: AccountTag, end: () => void): () => void {
    const ends = this.#byAccount.get(tag) ?? new Set();
    this.#byAccount.set(tag, ends.add(end));
    return () => {
      ends.delete(end);
      if (ends.size === 0) this.#byAccount.delete(tag);
    };
  }

  /** Ends all of an account's. */
  end(tag: AccountTag): void {
    for (const end of [...(this.#byAccount.get(tag) ?? [])]) end();
  }
}
