import { type SseEvent, SseReader } from "../../../src/wire/sse.ts";

/** A frame as text, for readable comparisons. */
export interface Frame {
  readonly raw: string;
  readonly event: string;
  readonly data: string | undefined;
}

/** Latin-1 keeps every byte distinct, so that equal texts are equal bytes even inside a broken character. */
export function frameOf(event: SseEvent): Frame {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
  return { raw: text(event.raw), event: event.event, data: event.data && text(event.data) };
}

/** Reads a whole stream that arrives in these chunks. */
export function framesOf(
  chunks: readonly Uint8Array[],
  eventBytesMax?: number,
): { frames: Frame[]; overflowed: boolean } {
  const reader = new SseReader(eventBytesMax);
  const frames = chunks.flatMap((chunk) => reader.push(chunk)).map(frameOf);
  frames.push(...reader.end().map(frameOf));
  return { frames, overflowed: reader.overflowed };
}

/** Cuts bytes at these positions; each chunk is a separate copy, as from a socket. */
export function cutAt(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const edges = [0, ...[...positions].sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((end, i) => bytes.slice(edges[i], end));
}

/** One chunk per byte. */
export function everyByte(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (byte) => Uint8Array.of(byte));
}
