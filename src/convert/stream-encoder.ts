/**
 * What the stream encoders of the three protocols share: their interface, and constructors for the frames they return.
 */
import type { ErrorAnswer } from "../values/errors.ts";
import type { Varying } from "./delta-template.ts";
import type { ClientFrames } from "./exchange.ts";
import type { ReplyEvent, Stop } from "./hub-reply.ts";

/** Deltas that contain text and nothing else. */
export type DeltaType = "text-delta" | "reasoning-delta";

/** Writes a hub stream, whose blocks are in sequence, for one client. Tool names are already the client's. */
export interface StreamEncoder {
  /** Frames for an event. The frames of `reply-end` are terminal; nothing may be pushed after it. */
  push(event: ReplyEvent): readonly ClientFrames[];
  /** The members that differ between the delta frames of one block. */
  readonly varying: Readonly<Record<DeltaType, Varying>>;
  /**
   * Accounts for `deltas` more deltas of the open block, which together contain this text. Does what `push` would do,
   * without returning frames.
   * @returns the number of the first of these frames; the others count up from it. 0 for protocols without frame
   * numbers.
   */
  again(text: string, deltas: number): number;
  /** A heartbeat frame for a time without output (ARCHITECTURE.md promise 8). */
  heartbeat(): Uint8Array;
  /**
   * The frames that end the stream as failed (promise 8).
   * @param code the machine-readable code of the fault, as OpenAI's protocols name it.
   */
  fail(answer: ErrorAnswer, code: string, requestId: string): Uint8Array;
}

/** Frames without model output, such as openings and closings. */
export function quiet(...frames: readonly Uint8Array[]): ClientFrames {
  return { bytes: join(frames), semantic: false, terminal: false };
}

/** Frames with text, reasoning, a refusal or a tool call. */
export function semantic(...frames: readonly Uint8Array[]): ClientFrames {
  return { bytes: join(frames), semantic: true, terminal: false };
}

/** The frames that end the stream. */
export function terminal(...frames: readonly Uint8Array[]): ClientFrames {
  return { bytes: join(frames), semantic: false, terminal: true };
}

function join(frames: readonly Uint8Array[]): Uint8Array {
  return frames.length === 1 ? (frames[0] as Uint8Array) : Buffer.concat(frames);
}

/** Whether the output was cut by a limit. */
export function isTruncated(stop: Stop): boolean {
  return stop.reason === "output-limit" || stop.reason === "context-limit";
}
