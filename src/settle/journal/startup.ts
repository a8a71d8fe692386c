/** Reads a journal folder when a process takes it over (docs/failure-model.md rows F3 and A5). */
import type { SettleAsk } from "../../store/settlement.ts";
import type { Disk } from "./disk.ts";
import { entryOf, Unsettled } from "./entry.ts";
import { type JournalFrame, RECORD } from "./frame.ts";
import {
  decodeAck,
  decodeCharge,
  decodeProgress,
  decodeSegmentStart,
  type JournalPosition,
  type Progress,
  type SegmentStart,
} from "./payload.ts";
import { type Scan, type Segment, scan, segmentName, segmentNumber } from "./segments.ts";

/** No segment of ours is larger than this; a larger file is not ours. */
const SEGMENT_READ_BYTES_MAX = 64 * 1024 * 1024;
/** Other names that belong here, besides segments; the folders are those of workers. */
const OURS = /^(worker-[0-9]+|journal\.lock|dead-letters\.jsonl|store-epoch\.json(\.new)?)$/;

/** A charge that was not acknowledged when the last process ended. */
export interface Leftover {
  readonly ask: SettleAsk;
  /** Whether its FINAL is on the disk. Otherwise `ask` comes from the last checkpoint, or from the OPEN. */
  readonly final: boolean;
  /** Whether an earlier recovery made its FINAL from a checkpoint. */
  readonly orphan: boolean;
}

export interface Found {
  readonly segments: readonly Segment[];
  readonly unsettled: Unsettled;
  readonly progress: Progress;
  /** Where the last segment's records end. */
  readonly last: JournalPosition | undefined;
  /** The latest time in the journal, by its own time; undefined if it has no records. */
  readonly lastMs: number | undefined;
  /** The next free number. */
  readonly next: number;
}

interface Read extends Segment {
  readonly found: Scan;
  readonly start: SegmentStart | undefined;
}

/**
 * Reads every segment. A crash leaves an incomplete record at the end of the last segment; any other damage is reported
 * and skipped.
 * @throws NewerJournalError, or the disk's error: an unreadable journal is never treated as empty.
 */
export async function readFolder(disk: Disk, alarm: (message: string) => void): Promise<Found> {
  const names = await disk.list();
  for (const name of names) {
    if (segmentNumber(name) === undefined && !OURS.test(name)) alarm(`${name} is not a journal file; it is ignored`);
  }
  const numbers = names.map(segmentNumber).filter((number) => number !== undefined);
  numbers.sort((left, right) => left - right);
  const state: State = { unsettled: new Unsettled(), progress: { verified: [], identity: undefined }, alarm };
  const segments: Segment[] = [];
  let before: Read | undefined;
  for (const number of numbers) {
    const read = await readSegment(disk, number, alarm);
    if (!read) continue;
    if (before) judgeDamage(before, read.start?.previous, alarm);
    replay(read, state);
    const { bytes, end, used } = read;
    // Earlier versions dated records by a clock that jumps; what follows a record is not older than it.
    const lastAtMs = Math.max(read.lastAtMs, before?.lastAtMs ?? 0);
    segments.push({ number, bytes, end, lastAtMs, used });
    before = { ...read, lastAtMs };
  }
  if (before) judgeDamage(before, { segment: before.number, offset: before.end }, alarm);
  const last = before && { segment: before.number, offset: before.end };
  const { unsettled, progress } = state;
  const lastMs = before && Math.max(before.lastAtMs, progress.sureAtMs ?? 0);
  return { segments, unsettled, progress, last, lastMs, next: (numbers.at(-1) ?? 0) + 1 };
}

/**
 * Undefined for a segment that was prepared but never used (it is removed) and for a foreign file (it is left alone).
 */
async function readSegment(disk: Disk, number: number, alarm: (message: string) => void): Promise<Read | undefined> {
  const name = segmentName(number);
  const bytes = await disk.read(name, 0, SEGMENT_READ_BYTES_MAX);
  const found = scan(bytes);
  const [first] = found.frames;
  if (!first) {
    if (found.torn) alarm(`${name} has no journal records; it is ignored`);
    else await disk.remove(name);
    return undefined;
  }
  const start = first.type === RECORD.segment ? decodeSegmentStart(first.payload) : undefined;
  const used = found.frames.some(({ type }) => type !== RECORD.segment && type !== RECORD.note);
  const lastAtMs = found.frames.reduce((latestMs, { atMs }) => Math.max(latestMs, atMs), 0);
  return { number, bytes: bytes.length, end: found.end, lastAtMs, used, found, start };
}

/** @param known where the segment's records end according to the next segment; nothing after that was relied upon. */
function judgeDamage(read: Read, known: JournalPosition | undefined, alarm: (message: string) => void): void {
  const name = segmentName(read.number);
  const expectedEnd = known?.segment === read.number ? known.offset : Number.POSITIVE_INFINITY;
  for (const { from, to } of read.found.damaged) {
    if (from < expectedEnd) alarm(`${name} is damaged from byte ${from} to ${to}; the records there are lost`);
  }
  if (Number.isFinite(expectedEnd) && read.end < expectedEnd) {
    alarm(`${name} is damaged: its records end at byte ${read.end}, not ${expectedEnd}; the ones between are lost`);
  } else if (!Number.isFinite(expectedEnd) && read.found.torn) {
    alarm(`${name} is damaged from byte ${read.end} on`);
  }
}

interface State {
  readonly unsettled: Unsettled;
  progress: Progress;
  readonly alarm: (message: string) => void;
}

function replay({ number, found, start }: Read, state: State): void {
  if (start) state.progress = start.progress;
  for (const frame of found.frames) {
    if (!apply(frame, number, state)) {
      state.alarm(`${segmentName(number)} has an unreadable record at byte ${frame.from}; it is skipped`);
    }
  }
}

/** False if the record cannot be decoded. */
function apply(frame: JournalFrame, segment: number, state: State): boolean {
  const { type, atMs, payload } = frame;
  switch (type) {
    case RECORD.open:
    case RECORD.checkpoint:
    case RECORD.final: {
      const text = payload.toString();
      const charge = decodeCharge(text);
      if (charge) state.unsettled.add(charge.ask.requestId, entryOf(type, atMs, text, segment));
      return charge !== undefined;
    }
    case RECORD.ack: {
      const ack = decodeAck(payload);
      if (ack) state.unsettled.remove(ack.id);
      return ack !== undefined;
    }
    case RECORD.note: {
      const progress = decodeProgress(payload);
      if (progress) state.progress = progress;
      return progress !== undefined;
    }
    default:
      return type === RECORD.segment || type === RECORD.admin;
  }
}

/** What recovery has to settle, oldest first. */
export function leftoversOf(unsettled: Unsettled): Leftover[] {
  const leftovers: Leftover[] = [];
  for (const { entry } of unsettled.lastWords()) {
    const charge = decodeCharge(entry.payload);
    if (charge) leftovers.push({ ...charge, final: entry.type === RECORD.final });
  }
  return leftovers;
}
