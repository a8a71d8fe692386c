/** Opens the journal that keeps its records on disk. */
import { FolderTakenError, FolderUnusableError, lockFolder } from "../../store/folder-lock.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { JournalSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import type { Journal, JournalHealth } from "../journal.ts";
import { type Disk, nodeDisk } from "./disk.ts";
import { entryOf } from "./entry.ts";
import { isTooLong, RECORD, type RecordType } from "./frame.ts";
import { journalTime } from "./journal-time.ts";
import { encode, encodeAck, encodeCharge, type Progress } from "./payload.ts";
import { judge, type Segment, segmentBytesFor, segmentName } from "./segments.ts";
import { type Leftover, leftoversOf, readFolder } from "./startup.ts";
import { Writer } from "./writer.ts";

/** The lock file: the process that holds it owns the folder (docs/failure-model.md row F4). */
const LOCK = "journal.lock";
/**
 * From this share of `bytesMax` on new requests are refused, so that running ones can finish (docs/failure-model.md
 * invariant 29).
 */
export const FULL_RATIO = 0.8;
/** Requests without an ACK that one process keeps in memory. */
const UNSETTLED_MAX = 100_000;

interface JournalParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly fsync: "group" | "always";
  readonly bytesMax: number;
  /**
   * With this many requests without an ACK, including running ones, new requests are refused. Default: `UNSETTLED_MAX`.
   */
  readonly unsettledMax?: number;
  /** Called for damage and disk failures, with the `event` of docs/log.md if there is one. */
  readonly alarm: (message: string, error?: unknown, event?: string) => void;
}

/** What verification reads of the journal. */
export interface JournalLog {
  /** The journal's time (journal-time.ts), by which its records are dated. */
  nowMs(): number;
  /** The number of the first segment that this process writes. */
  readonly firstOwn: number;
  segments(): readonly Segment[];
  read(segment: number, offset: number, bytes: number): Promise<Buffer>;
  /** The progress that the last process recorded. */
  readonly progress: Progress;
  note(progress: Progress): void;
  /**
   * Records that a charge was restored to the store. To a later walk (give-back.ts) it is as new as one acknowledged
   * now.
   */
  restored(id: RequestId): void;
  /** Removes segments that are no longer needed. @param verifiedBefore segments before this one are verified twice. */
  clean(verifiedBefore: number): Promise<void>;
}

export interface OpenedJournal {
  readonly journal: Journal;
  readonly log: JournalLog;
  /** Charges that the last process left unsettled; `settle/recovery/charging.ts` settles them. */
  readonly leftovers: readonly Leftover[];
}

/**
 * Locks the folder `settings.dir` for this process and reads the journal in it.
 * @throws FolderTakenError if another process has the folder; NewerJournalError; or Error with the reason why it cannot
 * be used.
 */
export async function openJournal(
  settings: JournalSettings,
  parts: Pick<JournalParts, "clock" | "alarm">,
): Promise<OpenedJournal & { readonly disk: Disk }> {
  const unlock = takeFolder(settings.dir);
  try {
    const disk = nodeDisk(settings.dir);
    const name = (message: string) => `${settings.dir}: ${message}`;
    const alarm: JournalParts["alarm"] = (message, ...facts) => parts.alarm(name(message), ...facts);
    const { fsync, bytesMax } = settings;
    const opened = await createJournal({ disk, clock: parts.clock, fsync, bytesMax, alarm });
    const close = () => opened.journal.close().finally(unlock);
    return { ...opened, disk, journal: { ...opened.journal, close } };
  } catch (error) {
    unlock();
    throw error;
  }
}

function takeFolder(dir: string): () => void {
  try {
    return lockFolder(dir, LOCK);
  } catch (error) {
    if (error instanceof FolderTakenError)
      throw new FolderTakenError(`${error.message} with the journal; give each process its own journal.dir`);
    if (error instanceof FolderUnusableError)
      throw new Error(`${error.message}; name another with the setting journal.dir`, { cause: error });
    throw error;
  }
}

/** Why the journal takes no new request although its disk works. */
function fullness(fillRatio: number, hasTooMany: boolean): string | undefined {
  if (fillRatio >= FULL_RATIO) return "the journal is full of charges that the store has not taken";
  return hasTooMany ? "too many charges wait for the store" : undefined;
}

/** Creates the journal on any disk. The caller ensures that no other process uses the folder. */
export async function createJournal(parts: JournalParts): Promise<OpenedJournal> {
  const { disk, clock, fsync, bytesMax, unsettledMax = UNSETTLED_MAX, alarm } = parts;
  const found = await readFolder(disk, alarm);
  const { unsettled } = found;
  const nowMs = journalTime(clock, found.lastMs);
  const segments: Segment[] = [...found.segments];
  const leftovers = leftoversOf(unsettled);
  let { progress } = found;
  let [started, reported] = [false, false];
  const segmentBytes = segmentBytesFor(bytesMax);
  /**
   * A running total, because each request reads it: adding up the 180 segments of a day takes 0.2 us, or 3 with cold
   * caches.
   */
  let bytesOfSegments = segments.reduce((sum, segment) => sum + segment.bytes, 0);
  const bytesTotal = () => bytesOfSegments + (writer.hasSpare ? segmentBytes : 0);
  const writer: Writer = new Writer({
    disk,
    clock,
    fsync,
    segmentBytes,
    nowMs,
    next: found.next,
    previous: found.last,
    // A journal that is full at the start must still open, or it could never be emptied.
    hasRoom: () => !started || bytesTotal() + segmentBytes <= bytesMax,
    live: () => unsettled.entries(),
    progress: () => progress,
    onSegment(segment) {
      segments.push(segment);
      bytesOfSegments += segment.bytes;
    },
    alarm,
  });
  await writer.start();
  started = true;

  const made = (type: RecordType, payload: string) => entryOf(type, nowMs(), payload);

  function health(): JournalHealth {
    const fillRatio = bytesTotal() / bytesMax;
    const reason = writer.problem ?? fullness(fillRatio, unsettled.count >= unsettledMax);
    const { oldestMs } = unsettled;
    return {
      usable: reason === undefined,
      reason,
      fillRatio,
      unsettled: unsettled.charges,
      oldestUnsettledMs: oldestMs === undefined ? 0 : nowMs() - oldestMs,
    };
  }

  async function clean(verifiedBefore: number): Promise<void> {
    const { remove, early, carry } = judge({
      segments,
      writing: writer.segment,
      verifiedBefore,
      live: unsettled.entries(),
      nowMs: nowMs(),
      bytesTotal: bytesTotal(),
      bytesMax,
    });
    if (early && !reported) {
      const message = "the journal is short of room: acknowledged charges are given up before their time";
      alarm(message, undefined, "history_given_up");
    }
    reported ||= early;
    for (const segment of remove) {
      await disk.remove(segmentName(segment.number));
      segments.splice(segments.indexOf(segment), 1);
      bytesOfSegments -= segment.bytes;
    }
    if (writer.isMending || carry.length === 0) return;
    // Skip those that were acknowledged while segments were removed: the next start would take a record after its ACK
    // for a new charge.
    const live = new Set(unsettled.entries());
    await Promise.all(carry.filter((entry) => live.has(entry)).map((entry) => writer.write(entry)));
  }

  const journal: Journal = {
    open({ voided, hold }) {
      const entry = made(RECORD.open, encodeCharge(voided, { hold }));
      unsettled.add(voided.requestId, entry);
      writer.append(entry);
    },
    checkpoint(ask) {
      const payload = encodeCharge(ask, {});
      // The previous checkpoint, or the OPEN, stays valid.
      if (isTooLong(payload)) return;
      const entry = unsettled.checkpoint(ask.requestId, nowMs(), payload);
      if (entry) writer.append(entry);
    },
    final(ask, orphan = false) {
      const entry = made(RECORD.final, encodeCharge(ask, orphan ? { orphan } : {}));
      // A record that is too long is refused below; if it were kept here, every rewrite after a disk failure would fail
      // with it.
      if (!isTooLong(entry.payload)) unsettled.add(ask.requestId, entry);
      return writer.write(entry);
    },
    ack(id, outcome) {
      if (unsettled.remove(id)) writer.append(made(RECORD.ack, encodeAck({ id, outcome })));
    },
    adminWrite: (record) => writer.write(made(RECORD.admin, encode(record))),
    health,
    close: () => writer.close(),
  };
  const log: JournalLog = {
    nowMs,
    firstOwn: found.next,
    segments: () => segments,
    read: (segment: number, offset: number, bytes: number) => disk.read(segmentName(segment), offset, bytes),
    progress: found.progress,
    note(next) {
      progress = next;
      writer.append(made(RECORD.note, encode(next)));
    },
    restored: (id) => void writer.append(made(RECORD.ack, encodeAck({ id, outcome: "settled" }))),
    clean,
  };
  return { journal, log, leftovers };
}
