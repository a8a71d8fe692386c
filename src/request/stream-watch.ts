/**
 * Watches a running stream for its cost: what has gone by, how long nothing was shown, and whether the upstream may go on,
 * waits for a client that reads slowly or for the store, or has reached the edge of what is set aside (ARCHITECTURE.md
 * promise 1).
 */

import type { AttemptCounts, StreamConverter } from "../convert/exchange.ts";
import type { UpstreamBody } from "../dispatch/ask.ts";
import type { Clock } from "../values/time.ts";
import type { HoldExtension } from "./hold-extension.ts";
import { endedSilence, type SeenCounts, Silence, withSilence } from "./silence.ts";

interface StreamWatchParts {
  readonly clock: Clock;
  /** When the upstream was asked, on the clock's `monotonicMs`. */
  readonly askedAtMs: number;
  readonly converter: StreamConverter;
  readonly body: Pick<UpstreamBody, "pause" | "resume">;
  /** Undefined where the hold covers the most. */
  readonly holdExtension: HoldExtension | undefined;
  /** Whether the model may think out of sight, so that a silent stream costs more and more. */
  readonly thinks: boolean;
  /** Runs a step that an answer or a timer has caused; a defect in it must end this request and no other. */
  readonly guard: (step: () => void) => void;
  /** The hold can grow no more, and the stream has reached its edge. */
  readonly onEdge: (holdExtension: HoldExtension) => void;
  /** Time has passed without a byte. */
  readonly onLook: (counts: SeenCounts) => void;
}

/** How often the cost of a silent stream is looked at. */
const LOOK_MS = 1_000;

export class StreamWatch {
  readonly #parts: StreamWatchParts;
  readonly #silence: Silence;
  /** Whether the upstream waits for the client. */
  #paused = false;
  /** Whether it waits for the store's word on the hold. */
  #awaitsStore = false;
  #over = false;
  /** What was known when the client waited no more. */
  #then: SeenCounts | undefined;
  #cancelLook: () => void = () => {};

  constructor(parts: StreamWatchParts) {
    this.#parts = parts;
    this.#silence = new Silence(parts.askedAtMs);
    this.saw();
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** What is known of the stream now. */
  counts(): SeenCounts {
    return this.#withSilence(this.#parts.converter.counts(), this.#parts.clock.monotonicMs());
  }

  #withSilence(counts: AttemptCounts, nowMs: number): SeenCounts {
    const now = withSilence(counts, this.#silence.ms(nowMs));
    return this.#then ? endedSilence(this.#then, now) : now;
  }

  /** The client waits for nothing more: it has left, or its stop string has come. */
  endSilence(): void {
    this.#then ??= this.counts();
  }

  /** The upstream has said something. @returns what is known of the stream now. */
  saw(nowMs = this.#parts.clock.monotonicMs()): SeenCounts {
    const counts = this.#parts.converter.counts();
    this.#silence.saw(counts, nowMs);
    return this.#withSilence(counts, nowMs);
  }

  /** Begins to look by itself: when the store has answered and, where a model thinks, when time has passed. */
  start(): void {
    const { holdExtension, guard, thinks } = this.#parts;
    holdExtension?.onAnswer(() => guard(() => this.look()));
    guard(() => this.look());
    if (thinks && !this.#over) this.#lookLater();
  }

  #lookLater(): void {
    const { clock, guard, onLook } = this.#parts;
    this.#cancelLook = clock.after(LOOK_MS, () =>
      guard(() => {
        this.look();
        if (this.#over) return;
        onLook(this.counts());
        this.#lookLater();
      }),
    );
  }

  /**
   * At the edge of its hold a stream waits for the store's answer, and ends where there is no more.
   * @param counts what is known of it; undefined: nobody has looked just now.
   */
  look(counts?: SeenCounts): void {
    const { holdExtension, converter, onEdge } = this.#parts;
    if (!holdExtension || converter.draining || this.#over) return;
    const verdict = holdExtension.look(counts ?? this.counts());
    if (verdict === "stop") {
      onEdge(holdExtension);
      return;
    }
    const awaitsStore = verdict === "wait";
    if (awaitsStore === this.#awaitsStore) return;
    this.#awaitsStore = awaitsStore;
    this.#flow();
  }

  /** The client cannot take more just now, or can again. */
  pause(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    this.#flow();
  }

  #flow(): void {
    const { body, clock } = this.#parts;
    const held = this.#paused || this.#awaitsStore;
    this.#silence.holdBack(held, clock.monotonicMs());
    // A client that does not read must not keep its bill open; what the store has not granted yet must not flow.
    if (held) body.pause(this.#awaitsStore);
    else body.resume();
  }

  /** Nobody reads any more: the upstream flows, and the hold stays as it is. */
  letFlow(): void {
    this.stop();
    this.endSilence();
    this.#paused = false;
    this.#awaitsStore = false;
    this.#flow();
  }

  stop(): void {
    this.#over = true;
    this.#cancelLook();
  }
}
