/**
 * How long a call may take: for a connection, a first byte, a whole answer, silence inside one, and all of it together. One timer
 * is for all of these. A limit that is further away than the timer leaves it alone: it looks when it fires, and sleeps for the
 * rest. Mostly a whole answer has come before its connection would have been given up, and a call sets one timer in place of two.
 */
import type { UpstreamSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { type Failure, failure } from "../failure.ts";

/** The call that is limited. */
interface Limited {
  readonly over: boolean;
  /** Whether it is us who do not read. */
  readonly held: boolean;
  /** Looks at what has been said before a limit ends the call. */
  catchUp(): void;
  timedOut(failed: Failure): void;
}

type LimitedStep = "connect" | "first_byte" | "whole" | "deadline";

const DEADLINE = failure("deadline", "the request's time is over");

export class CallLimits {
  readonly #timeouts: UpstreamSettings["timeouts"];
  readonly #clock: Clock;
  readonly #call: Limited;
  #deadlineMs = Number.POSITIVE_INFINITY;
  /** What is waited for; "deadline" where the request's own end comes before that step's, or where no step is left. */
  #step: LimitedStep = "connect";
  #stepUntilMs = Number.POSITIVE_INFINITY;
  #lastByteMs = 0;
  /** When silence is looked for. */
  #idleAtMs = Number.POSITIVE_INFINITY;
  /** Never after the earliest limit: one that moves away leaves the timer alone, and one that comes nearer sets it anew. */
  #firesAtMs = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined = undefined;

  constructor(timeouts: UpstreamSettings["timeouts"], clock: Clock, call: Limited) {
    this.#timeouts = timeouts;
    this.#clock = clock;
    this.#call = call;
  }

  /** All times are on the clock's `monotonicMs`. @param deadlineMs the end of the request's life. */
  connecting(deadlineMs: number, nowMs: number): void {
    this.#deadlineMs = deadlineMs;
    this.#limitStep("connect", this.#timeouts.connectMs, nowMs);
  }

  /** The request is on a connection. */
  sent(isStream: boolean, deadlineMs: number, nowMs: number): void {
    this.#deadlineMs = deadlineMs;
    if (isStream) this.#limitStep("first_byte", this.#timeouts.firstByteMs, nowMs);
    else this.#limitStep("whole", this.#timeouts.wholeMs, nowMs);
  }

  /** One step in place of the one before it: the request's own end comes with it, where that is earlier. */
  #limitStep(step: LimitedStep, ms: number, nowMs: number): void {
    const untilMs = nowMs + ms;
    this.#step = this.#deadlineMs <= untilMs ? "deadline" : step;
    this.#stepUntilMs = Math.min(untilMs, this.#deadlineMs);
    this.#lookWhenDue(nowMs);
  }

  /** A stream has begun: from here on only the request's own end and silence limit it. */
  streaming(): void {
    this.#step = "deadline";
    this.#stepUntilMs = this.#deadlineMs;
  }

  /** A byte has come, or a silence that was ours has ended. */
  heard(nowMs: number): void {
    this.#lastByteMs = nowMs;
  }

  /** A body goes on: silence is looked for from now on. */
  watchSilence(nowMs: number, waitMs = this.#timeouts.idleMs): void {
    this.#idleAtMs = nowMs + waitMs;
    this.#lookWhenDue(nowMs);
  }

  /** The last byte has come, and may still have to be unpacked. */
  bodyEnded(): void {
    this.#idleAtMs = Number.POSITIVE_INFINITY;
  }

  stop(): void {
    this.#firesAtMs = Number.POSITIVE_INFINITY;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #lookWhenDue(nowMs: number): void {
    const dueMs = Math.min(this.#stepUntilMs, this.#idleAtMs);
    if (dueMs >= this.#firesAtMs) return;
    this.#cancel?.();
    this.#firesAtMs = dueMs;
    this.#cancel = this.#clock.after(Math.max(0, dueMs - nowMs), () => this.#look());
  }

  #look(): void {
    this.#firesAtMs = Number.POSITIVE_INFINITY;
    this.#cancel = undefined;
    this.#call.catchUp();
    if (this.#call.over) return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#stepUntilMs) this.#call.timedOut(this.#stepFailure());
    else if (nowMs >= this.#idleAtMs) this.#lookForSilence(nowMs);
    else this.#lookWhenDue(nowMs);
  }

  #stepFailure(): Failure {
    const { connectMs, firstByteMs, wholeMs } = this.#timeouts;
    switch (this.#step) {
      case "connect":
        return failure("connect_timeout", `no connection within ${connectMs} ms`);
      case "first_byte":
        return failure("first_byte_timeout", `no byte of an answer within ${firstByteMs} ms`);
      case "whole":
        return failure("whole_timeout", `no whole answer within ${wholeMs} ms`);
      case "deadline":
        return DEADLINE;
    }
  }

  /** One look for many chunks: at the time of the last byte. */
  #lookForSilence(nowMs: number): void {
    const { idleMs } = this.#timeouts;
    const restMs = this.#lastByteMs + idleMs - nowMs;
    if (this.#call.held) this.watchSilence(nowMs);
    else if (restMs > 0) this.watchSilence(nowMs, restMs);
    else this.#call.timedOut(failure("idle_timeout", `${idleMs} ms of silence inside the body`));
  }
}
