/** What the stream encoders of the three protocols have in common: the interface and the pieces that they give. */
import type { ErrorAnswer } from "../values/errors.ts";
import type { Varying } from "./delta-template.ts";
import type { ClientFrames } from "./exchange.ts";
import type { ReplyEvent, Stop } from "./hub.ts";

/** Deltas that hold a text and nothing else. */
export type DeltaType = "text-delta" | "reasoning-delta";

/** Writes a sequential hub stream for one client; names of tools are the client's already. */
export interface StreamEncoder {
  /** Frames for an event. The frames of `reply-end` are terminal; nothing may be pushed after it. */
  push(event: ReplyEvent): readonly ClientFrames[];
  /** What differs between the frames of deltas of one block. */
  readonly varying: Readonly<Record<DeltaType, Varying>>;
  /**
   * Takes so many deltas more of the open block, with this text together: as `push` would, but for their frames.
   * @returns the number of the first of these frames, which count on from it; 0 where frames have no number.
   */
  again(text: string, deltas: number): number;
  /** A frame for a silent stretch (ARCHITECTURE.md promise 8). */
  heartbeat(): Uint8Array;
  /**
   * The frames that end the stream as failed (promise 8).
   * @param code the machine-readable code of the fault, in the words of OpenAI's protocols.
   */
  fail(answer: ErrorAnswer, code: string, requestId: string): Uint8Array;
}

/** Frames that say nothing of the model's own: openings, closings. */
export function quiet(...frames: readonly Uint8Array[]): ClientFrames {
  return { bytes: join(frames), semantic: false, terminal: false };
}

/** Frames that hold text, reasoning, a refusal or a tool call. */
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
