/** Segment files of a journal: their names, reading them, and when they may be removed. */
import type { Entry } from "./entry.ts";
import { decodeFrame, type JournalFrame, MAGIC } from "./frame.ts";

/** One segment file. */
export interface Segment {
  readonly number: number;
  /** Its preallocated size. */
  readonly bytes: number;
  /** Where its records end. */
  end: number;
  /** When its last record was written, by the journal's time. */
  lastAtMs: number;
  /** Whether it has anything besides its first record and notes. */
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
/**
 * Even a small journal has this many segments, so that rotation works and one segment is a small share of its space.
 */
const SEGMENTS_MIN = 16;

/** 4 MiB, or less if the whole journal is small. */
export function segmentBytesFor(bytesMax: number): number {
  return Math.min(SEGMENT_BYTES, Math.floor(bytesMax / SEGMENTS_MIN / 4_096) * 4_096);
}

/* Reading a segment as it is found: valid frames in order, and damaged ranges between them. */

export interface Scan {
  readonly frames: readonly JournalFrame[];
  /** Where the last valid frame ends. */
  readonly end: number;
  /** Ranges `[from, to)` before the last valid frame that have no valid frame. */
  readonly damaged: readonly { readonly from: number; readonly to: number }[];
  /** Whether something other than zeros follows the last valid frame: an incomplete write. */
  readonly torn: boolean;
}

/**
 * Scans the bytes of a segment from `start` on. Zeros or garbage do not end the scan while a valid frame follows:
 * a lost page must not hide the charges after it (docs/failure-model.md row F3).
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

/*
 * When a segment may be removed: everything in it is acknowledged, verified twice and older than the retention. When
 * space is short, acknowledged records are removed early so that service continues. A charge without an ACK is never
 * removed.
 */

/** How long acknowledged records are kept: data that a store loses can be restored that far back. */
const RETENTION_MS = 24 * 3_600_000;
/** From this share of `bytesMax` on, acknowledged records are removed early. */
export const PRESSURE_RATIO = 0.7;

interface RetentionFacts {
  /** Oldest first; the one being written is never removed. */
  readonly segments: readonly Segment[];
  readonly writing: number;
  /** Segments before this one are verified twice. */
  readonly verifiedBefore: number;
  /** Records without an ACK. */
  readonly live: Iterable<Entry>;
  /** By the journal's time. */
  readonly nowMs: number;
  readonly bytesTotal: number;
  readonly bytesMax: number;
}

interface RetentionVerdict {
  /** Empty segments, and the oldest ones without a gap, so that no ACK is removed before its FINAL. */
  readonly remove: readonly Segment[];
  /** Whether some of them had not been verified twice. */
  readonly early: boolean;
  /**
   * Records that keep the oldest segment in place while space is short. Once rewritten elsewhere, the segment can be
   * removed.
   */
  readonly carry: readonly Entry[];
}

export function judge(facts: RetentionFacts): RetentionVerdict {
  const { segments, writing, verifiedBefore, nowMs, bytesMax } = facts;
  const pinned = pinnedBy(facts.live);
  const remove: Segment[] = [];
  let carry: readonly Entry[] | undefined;
  let early = false;
  let blocked = false;
  const closed = segments.slice(0, closedCount(segments, writing));
  // Empty segments, such as those of many restarts, are removed in any case.
  let bytesLeft = closed.reduce((left, { used, bytes }) => (used ? left : left - bytes), facts.bytesTotal);
  for (const segment of closed) {
    const pressed = bytesLeft > bytesMax * PRESSURE_RATIO;
    const pins = pinned.get(segment.number);
    const verified = segment.number < verifiedBefore;
    const aged = verified && segment.lastAtMs + RETENTION_MS <= nowMs;
    if (pins && pressed) carry ??= pins;
    blocked ||= pins !== undefined || (segment.used && !aged && !pressed);
    if (segment.used && (blocked || pins)) continue;
    early ||= segment.used && !verified;
    if (segment.used) bytesLeft -= segment.bytes;
    remove.push(segment);
  }
  return { remove, early, carry: carry ?? [] };
}

/** How many segments are before the one being written. */
function closedCount(segments: readonly Segment[], writing: number): number {
  const at = segments.findIndex(({ number }) => number === writing);
  return at < 0 ? segments.length : at;
}

/** A record that is being rewritten pins two segments: that of the copy on the disk, and that of the new one. */
function pinnedBy(live: Iterable<Entry>): Map<number, Entry[]> {
  const pinned = new Map<number, Entry[]>();
  const pin = (segment: number, entry: Entry): void => {
    const entries = pinned.get(segment) ?? [];
    entries.push(entry);
    pinned.set(segment, entries);
  };
  for (const entry of live) {
    pin(entry.segment, entry);
    if (entry.kept > 0) pin(entry.kept, entry);
  }
  return pinned;
}
