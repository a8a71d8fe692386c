/**
 * Watches the cost of a running stream: what was relayed, and how long nothing was shown. Decides whether the upstream
 * may go on, waits for a slow client or for the store, or has reached the edge of the hold (ARCHITECTURE.md promise 1).
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
  /** Undefined if the hold covers the maximum. */
  readonly holdExtension: HoldExtension | undefined;
  /** Whether the model may think unseen, so that a silent stream costs more and more. */
  readonly thinks: boolean;
  /** Runs a step caused by an answer or a timer; a defect in it must end only this request. */
  readonly guard: (step: () => void) => void;
  /** The hold cannot grow any more, and the stream has reached its edge. */
  readonly onEdge: (holdExtension: HoldExtension) => void;
  /** Time has passed without a byte. */
  readonly onLook: (counts: SeenCounts) => void;
}

/** How often the cost of a silent stream is checked. */
const LOOK_MS = 1_000;

export class StreamWatch {
  readonly #parts: StreamWatchParts;
  readonly #silence: Silence;
  /** Whether the upstream waits for the client. */
  #paused = false;
  /** Whether it waits for the store's answer about the hold. */
  #awaitsStore = false;
  #over = false;
  /** The counts when the client stopped waiting. */
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

  /** The same, with the silence after the client stopped waiting: it can retrieve what its model thinks meanwhile. */
  keptCounts(): SeenCounts {
    return withSilence(this.#parts.converter.counts(), this.#silence.ms(this.#parts.clock.monotonicMs()));
  }

  #withSilence(counts: AttemptCounts, nowMs: number): SeenCounts {
    const now = withSilence(counts, this.#silence.ms(nowMs));
    return this.#then ? endedSilence(this.#then, now) : now;
  }

  /** The client waits for nothing more: it has disconnected, or its stop string has come. */
  endSilence(): void {
    this.#then ??= this.counts();
  }

  /** The upstream has sent something. @returns the counts of the stream now. */
  saw(nowMs = this.#parts.clock.monotonicMs()): SeenCounts {
    const counts = this.#parts.converter.counts();
    this.#silence.saw(counts, nowMs);
    return this.#withSilence(counts, nowMs);
  }

  /** Starts to check by itself: after an answer of the store and, if the model thinks, at intervals. */
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
   * At the edge of its hold, a stream waits for the store's answer, and ends if there is no more.
   * @param counts of the stream; undefined if they were not read just now.
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

  /** The client cannot accept more at the moment, or can again. */
  pause(paused: boolean): void {
    if (paused === this.#paused) return;
    this.#paused = paused;
    this.#flow();
  }

  #flow(): void {
    const { body, clock } = this.#parts;
    const held = this.#paused || this.#awaitsStore;
    this.#silence.holdBack(held, clock.monotonicMs());
    // A client that does not read must not keep its bill open. What the store has not granted yet must not flow.
    if (held) body.pause(this.#awaitsStore);
    else body.resume();
  }

  /** The client has stopped reading: the upstream flows, and the hold stays as it is. */
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
