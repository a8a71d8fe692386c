/** Reads a segment as it is found: valid frames in order, and the damaged stretches between them. */
import { decodeFrame, type JournalFrame, MAGIC } from "./frame.ts";

export interface Scan {
  readonly frames: readonly JournalFrame[];
  /** Where the last valid frame ends. */
  readonly end: number;
  /** Stretches `[from, to)` before the last valid frame that hold none. */
  readonly damaged: readonly { readonly from: number; readonly to: number }[];
  /** Whether something other than zeros follows the last valid frame: a write that was cut. */
  readonly torn: boolean;
}

/**
 * Walks over the bytes of a segment from `start` on. Zeros or garbage never end the walk while a valid frame follows:
 * a page that was lost must not hide the charges after it (docs/failure-model.md row F3).
 */
export function scan(bytes: Buffer, start = 0): Scan {
  const frames: JournalFrame[] = [];
  const damaged: { from: number; to: number }[] = [];
  let end = start;
  for (;;) {
    const frame = decodeFrame(bytes, end) ?? nextFrame(bytes, end + 1);
    if (!frame) return { frames, end, damaged, torn: !isZero(bytes, end) };
    if (frame.from > end) damaged.push({ from: end, to: frame.from });
    frames.push(frame);
    end = frame.end;
  }
}

function nextFrame(bytes: Buffer, from: number): JournalFrame | undefined {
  for (let at = bytes.indexOf(MAGIC, from); at >= 0; at = bytes.indexOf(MAGIC, at + 1)) {
    const frame = decodeFrame(bytes, at);
    if (frame) return frame;
  }
  return undefined;
}

const ZEROS = Buffer.alloc(64 * 1024);

function isZero(bytes: Buffer, from: number): boolean {
  for (let at = from; at < bytes.length; at += ZEROS.length) {
    const piece = bytes.subarray(at, at + ZEROS.length);
    if (!piece.equals(ZEROS.subarray(0, piece.length))) return false;
  }
  return true;
}
