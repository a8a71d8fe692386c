/**
 * The timeouts of a call: for a connection, a first byte, a whole answer, silence inside it, and the total. One timer
 * serves all of them. A limit later than the timer does not move it: when the timer fires, it checks and sleeps for the
 * rest. Most whole answers arrive before the connect timeout, so a call sets one timer instead of two.
 */
import type { UpstreamSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { type Failure, failure } from "../failure.ts";

/** The call that is limited. */
interface Limited {
  readonly over: boolean;
  /** Whether the gateway has paused reading. */
  readonly held: boolean;
  /** Asks whether a silent upstream still works; undefined: it fails at once. */
  readonly isWorking: (() => Promise<boolean>) | undefined;
  /** Processes what has arrived before a limit ends the call. */
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
  /** The current step; "deadline" if the request's own end comes first, or if no step is left. */
  #step: LimitedStep = "connect";
  #stepUntilMs = Number.POSITIVE_INFINITY;
  #lastByteMs = 0;
  /** When silence is checked. */
  #idleAtMs = Number.POSITIVE_INFINITY;
  /** Whether it is being found out if the silent upstream still works. */
  #isAsking = false;
  /**
   * Never later than the earliest limit: a limit that moves later leaves the timer alone, one that moves earlier resets
   * it.
   */
  #firesAtMs = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined = undefined;

  constructor(timeouts: UpstreamSettings["timeouts"], clock: Clock, call: Limited) {
    this.#timeouts = timeouts;
    this.#clock = clock;
    this.#call = call;
  }

  /** All times are on the clock's `monotonicMs`. @param deadlineMs the end of the request's lifetime. */
  connecting(deadlineMs: number, nowMs: number): void {
    this.#deadlineMs = deadlineMs;
    this.#limitStep("connect", this.#timeouts.connectMs, nowMs);
  }

  /** The request has been put on a connection. */
  sent(isStream: boolean, deadlineMs: number, nowMs: number): void {
    this.#deadlineMs = deadlineMs;
    if (isStream) this.#limitStep("first_byte", this.#timeouts.firstByteMs, nowMs);
    else this.#limitStep("whole", this.#timeouts.wholeMs, nowMs);
  }

  /** Replaces the current step; its limit is the request's own end if that is earlier. */
  #limitStep(step: LimitedStep, ms: number, nowMs: number): void {
    const untilMs = nowMs + ms;
    this.#step = this.#deadlineMs <= untilMs ? "deadline" : step;
    this.#stepUntilMs = Math.min(untilMs, this.#deadlineMs);
    this.#lookWhenDue(nowMs);
  }

  /** A stream has begun: from here on, only the request's own end and silence limit it. */
  streaming(): void {
    this.endBy(this.#deadlineMs);
  }

  /** From here on, only this end and silence limit the call. */
  endBy(endMs: number): void {
    this.#step = "deadline";
    this.#stepUntilMs = endMs;
  }

  /** A byte has arrived, or a pause of our own has ended. */
  heard(nowMs: number): void {
    this.#lastByteMs = nowMs;
  }

  /** A body continues: silence is checked from now on. */
  watchSilence(nowMs: number, waitMs = this.#timeouts.idleMs): void {
    this.#idleAtMs = nowMs + waitMs;
    this.#lookWhenDue(nowMs);
  }

  /** The last byte has arrived; it may still have to be decompressed. */
  bodyEnded(): void {
    this.#isAsking = false;
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

  /** One check for many chunks, by the time of the last byte. */
  #lookForSilence(nowMs: number): void {
    const { idleMs } = this.#timeouts;
    const restMs = this.#lastByteMs + idleMs - nowMs;
    if (this.#call.held) this.watchSilence(nowMs);
    else if (restMs > 0) this.watchSilence(nowMs, restMs);
    else if (this.#call.isWorking) this.#askWhetherItWorks(this.#call.isWorking, nowMs);
    else this.#failAsSilent();
  }

  #failAsSilent(): void {
    this.#call.timedOut(failure("idle_timeout", `${this.#timeouts.idleMs} ms of silence inside the body`));
  }

  /** Meanwhile only the request's own end limits the call. */
  #askWhetherItWorks(isWorking: () => Promise<boolean>, sinceMs: number): void {
    this.#isAsking = true;
    this.#idleAtMs = Number.POSITIVE_INFINITY;
    this.#lookWhenDue(sinceMs);
    void isWorking().then((works) => {
      this.#call.catchUp();
      if (this.#call.over || !this.#isAsking) return;
      this.#isAsking = false;
      const nowMs = this.#clock.monotonicMs();
      if (works) this.heard(nowMs);
      if (this.#lastByteMs >= sinceMs) this.watchSilence(nowMs);
      else this.#failAsSilent();
    });
  }
}
