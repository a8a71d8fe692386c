/** A request that waits for a place at any of several full upstreams: the first that is free has it. */
import type { Clock } from "../values/time.ts";
import type { Owner } from "./line.ts";
import type { Place, Places, Waiter } from "./places.ts";

/**
 * `granted`: the place is the caller's. `again`: an upstream of the line is not to be waited for any more, look again.
 * `refused`: no room in any line, or waited long enough; the seconds say when to try again. `gone`: the client left.
 */
export type Waited =
  | { readonly kind: "granted"; readonly at: Places; readonly place: Place }
  | { readonly kind: "again" }
  | { readonly kind: "refused"; readonly retryAfterS: number }
  | { readonly kind: "gone" };

export interface WaitOptions {
  readonly owner: Owner;
  /** On the clock's `monotonicMs`. */
  readonly untilMs: number;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Waits in the lines of all these, none of which has room. Never rejects. */
export function waitForPlace(lines: readonly Places[], options: WaitOptions): Promise<Waited> {
  return new Promise((resolve) => new Wait(lines, options, resolve).start());
}

class Wait implements Waiter {
  readonly owner: Owner;
  readonly #options: WaitOptions;
  readonly #resolve: (waited: Waited) => void;
  readonly #all: readonly Places[];
  readonly #lines: Set<Places>;
  #cancelTimer: () => void = () => {};

  constructor(lines: readonly Places[], options: WaitOptions, resolve: (waited: Waited) => void) {
    this.owner = options.owner;
    this.#options = options;
    this.#resolve = resolve;
    this.#all = lines;
    this.#lines = new Set(lines);
  }

  start(): void {
    const { clock, untilMs, signal } = this.#options;
    const restMs = untilMs - clock.monotonicMs();
    if (restMs <= 0) {
      this.#refuse();
      return;
    }
    for (const places of this.#all) if (!places.lineUp(this)) this.#lines.delete(places);
    if (this.#lines.size === 0) {
      this.#refuse();
      return;
    }
    signal.addEventListener("abort", this.#clientGone, { once: true });
    this.#cancelTimer = clock.after(restMs, () => this.#refuse());
  }

  granted(at: Places, place: Place): void {
    this.#lines.delete(at);
    this.#end({ kind: "granted", at, place });
  }

  displaced(places: Places): void {
    this.#lines.delete(places);
    if (this.#lines.size === 0) this.#refuse();
  }

  dissolved(): void {
    this.#end({ kind: "again" });
  }

  #refuse(): void {
    // Its own stand must not count as one more in front of it.
    this.#leaveLines();
    this.#end({ kind: "refused", retryAfterS: Math.min(...this.#all.map((places) => places.retryAfterS())) });
  }

  readonly #clientGone = (): void => this.#end({ kind: "gone" });

  #end(waited: Waited): void {
    this.#leaveLines();
    this.#cancelTimer();
    this.#options.signal.removeEventListener("abort", this.#clientGone);
    this.#resolve(waited);
  }

  #leaveLines(): void {
    for (const places of this.#lines) places.leaveLine(this);
    this.#lines.clear();
  }
}
