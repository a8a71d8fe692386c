/** The files of a journal, oldest first. */

/** One segment file. */
export interface Segment {
  readonly number: number;
  /** Its preallocated size. */
  readonly bytes: number;
  /** Where its records end. */
  end: number;
  /** When its last record was written, milliseconds since the epoch. */
  lastAtMs: number;
  /** Whether it holds anything beyond its own first record and notes. */
  used: boolean;
}

const NAME = /^journal-([0-9]{10})\.seg$/;

export function segmentName(number: number): string {
  return `journal-${String(number).padStart(10, "0")}.seg`;
}

/** The number in a segment's name, or undefined for any other file. */
export function segmentNumber(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const SEGMENT_BYTES = 4 * 1024 * 1024;
/** A small journal still has enough segments for rotation to matter and for the brim to be far. */
const SEGMENTS_MIN = 16;

/** Segments of 4 MiB, smaller where the whole journal is. */
export function segmentBytesFor(bytesMax: number): number {
  return Math.min(SEGMENT_BYTES, Math.floor(bytesMax / SEGMENTS_MIN / 4_096) * 4_096);
}
