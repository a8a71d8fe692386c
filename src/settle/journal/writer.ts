/**
 * Writes records into preallocated segments and reports when they are on the disk.
 *
 * The main rule (docs/failure-model.md row F2): after a write or a sync has failed, that file descriptor is never
 * trusted again. A new segment is opened and every record that matters is written again. If that fails too, the journal
 * counts as broken, reports it, and retries until it succeeds.
 */

import { errorText } from "../../values/program/error-text.ts";
import { afterReady, afterTurn } from "../../values/time.ts";
import { JournalBrokenError } from "../journal.ts";
import type { DiskFile } from "./disk.ts";
import { type Entry, entryOf, isWrittenAgain } from "./entry.ts";
import { isTooLong, PAYLOAD_BYTES_MAX, RECORD } from "./frame.ts";
import { encode, type JournalPosition, type SegmentStart } from "./payload.ts";
import type { Segment } from "./segments.ts";
import { type OpenSegment, RETRY_MS, type SpareParts, SpareSegment } from "./spare.ts";

/**
 * Syncs of a busy journal start this far apart; with the sync itself a charge waits less than 5 ms on a healthy disk.
 * If the last sync had only one waiter, the journal is not busy and the next sync does not wait for others; that saves
 * each charge 2 ms on average.
 */
const GROUP_MS = 4;
/**
 * An ACK is written together with the next record, or at the latest after this time. A write of its own takes 4 us, and
 * 13 us while a sync runs. If a kill loses an ACK, the charge is resent and the store answers that it has it.
 */
const ACK_MS = 100;
/**
 * Maximum of records that wait for a segment to be made; above it the disk is too slow. Records of running requests are
 * still added, except checkpoints: the journal keeps them in memory anyway, and a lost ACK would leave its charge
 * unsettled forever.
 */
const QUEUE_MAX = 10_000;
const SLOW = "the journal's disk is too slow: records wait for their segment";

interface WriterParts extends SpareParts {
  readonly fsync: "group" | "always";
  /** The journal's time. */
  readonly nowMs: () => number;
  /** Where the last segment of an earlier process ended. */
  readonly previous: JournalPosition | undefined;
  /** Records that are rewritten to a new segment after a file has failed, so that they stay on the disk. */
  readonly live: () => Iterable<Entry>;
  /** The verification progress that a new segment records. */
  readonly progress: () => SegmentStart["progress"];
  readonly onSegment: (segment: Segment) => void;
}

interface Waiter {
  readonly entry: Entry;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Sorts those that are in a segment to the front and counts them; the others wait for a new segment. A sync that ends
 * then knows by the count which ones it was for, even if others have come meanwhile. Until then none of the first ones
 * is removed, except all at once when the disk fails (`#epoch`).
 */
function placedFirst<T>(waiting: T[], entryOf: (one: T) => Entry): { readonly all: T[]; readonly placed: number } {
  const isPlaced = (one: T): boolean => entryOf(one).segment > 0;
  if (waiting.every(isPlaced)) return { all: waiting, placed: waiting.length };
  const placed = waiting.filter(isPlaced);
  return { all: placed.concat(waiting.filter((one) => !isPlaced(one))), placed: placed.length };
}

const waitersEntry = ({ entry }: Waiter): Entry => entry;
const itself = (entry: Entry): Entry => entry;

export class Writer {
  readonly #parts: WriterParts;
  readonly #spare: SpareSegment;
  #previous: JournalPosition | undefined;
  #current: OpenSegment | undefined;
  /** Segments written to since their last sync. */
  #dirty = new Set<OpenSegment>();
  /** Records that wait for a new segment. */
  #queue: Entry[] = [];
  #waiters: Waiter[] = [];
  /** ACKs that are not on the disk yet. Nothing waits for them, but a charge is verified only with its ACK. */
  #acks: Entry[] = [];
  #pumping: Promise<void> | undefined;
  #syncing: Promise<void> | undefined;
  #cancelGroup: (() => void) | undefined;
  #cancelFlush: (() => void) | undefined;
  #cancelAckFlush: (() => void) | undefined;
  /** When the last sync began. */
  #syncedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether several waited for it. */
  #isBusy = false;
  /** Incremented with each descriptor that is given up: a sync that was running then proves nothing. */
  #epoch = 0;
  #failures = 0;
  #broken = false;
  #closed = false;
  #problem: string | undefined;

  constructor(parts: WriterParts) {
    this.#parts = parts;
    this.#spare = new SpareSegment(parts);
    this.#previous = parts.previous;
  }

  /** Makes the first segment. @throws the disk's error. */
  async start(): Promise<void> {
    await this.#advance();
  }

  /** Why no new request may rely on this journal; undefined if there is no problem. */
  get problem(): string | undefined {
    return this.#problem ?? this.#spare.problem ?? (this.#isSlow ? SLOW : undefined);
  }

  /** Whether records are being rewritten after a failure: the segments with their old copies must stay. */
  get isMending(): boolean {
    return this.#failures > 0;
  }

  get #isSlow(): boolean {
    return this.#queue.length >= QUEUE_MAX;
  }

  /** The segment that is being written; 0 if there is none. */
  get segment(): number {
    return this.#current?.number ?? 0;
  }

  /** Whether there is a spare segment, or one is being made. */
  get hasSpare(): boolean {
    return this.#spare.exists;
  }

  /** Writes in this turn of the event loop if the segment has room, else later. False if nothing can be written now. */
  append(entry: Entry): boolean {
    if (isTooLong(entry.payload)) throw new RangeError(`a journal record beyond ${PAYLOAD_BYTES_MAX} bytes`);
    if (entry.type === RECORD.ack) this.#acks.push(entry);
    if (this.#broken || this.#closed) return false;
    if (this.#isSlow && entry.type === RECORD.checkpoint) return false;
    if (this.#queue.length === 0 && this.#put(entry)) {
      // The client already has what this checkpoint covers: a kill in the same turn must not make it free of charge.
      if (entry.type === RECORD.checkpoint) this.#flush();
    } else {
      this.#queue.push(entry);
      this.#pump();
    }
    if (this.#parts.fsync === "always") this.#requestSync();
    return !this.#broken;
  }

  /** Resolves when the record is on the disk. Rejects with JournalBrokenError if it cannot be written. */
  write(entry: Entry): Promise<void> {
    isWrittenAgain(entry);
    if (isTooLong(entry.payload)) return Promise.reject(new JournalBrokenError("the record is too long"));
    if (this.#isSlow && !this.#broken) {
      // A charge is still queued and written when there is room, but the caller does not wait for it.
      if (entry.type === RECORD.final) this.append(entry);
      return Promise.reject(new JournalBrokenError(SLOW));
    }
    return new Promise((resolve, reject) => {
      const waiter = { entry, resolve, reject };
      this.#waiters.push(waiter);
      if (this.append(entry)) return this.#requestSync();
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      reject(new JournalBrokenError(this.problem ?? "the journal is closed"));
    });
  }

  /** Syncs what was written, closes every file, and removes the unused segment. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelGroup?.();
    this.#cancelGroup = undefined;
    this.#cancelFlush?.();
    this.#cancelAckFlush?.();
    while (this.#pumping || this.#syncing) await (this.#pumping ?? this.#syncing);
    await this.#sync();
    if (this.#pumping) {
      // The sync has failed, and the live records are being written to another segment.
      await this.#pumping;
      await this.#sync();
    }
    for (const segment of new Set([...this.#dirty, ...(this.#current ? [this.#current] : [])])) this.#retire(segment);
    this.#rejectAll("the journal is closed");
    await this.#spare.close();
  }

  /** Adds a record to the end of the segment if it fits. Records of the same turn are written in one call. */
  #put(entry: Entry): boolean {
    const segment = this.#current;
    if (!segment?.unwritten.add(entry.type, entry.atMs, entry.payload, segment.bytes - segment.next)) return false;
    this.#dirty.add(segment);
    segment.next = segment.end + segment.unwritten.length;
    // A record that is written again has its first time.
    segment.lastAtMs = Math.max(segment.lastAtMs, entry.atMs);
    segment.used ||= entry.type !== RECORD.segment && entry.type !== RECORD.note;
    entry.segment = segment.number;
    this.#flushLater(entry);
    return true;
  }

  #flushLater({ type }: Entry): void {
    const { clock } = this.#parts;
    if (type === RECORD.ack) {
      this.#cancelAckFlush ??= clock.after(ACK_MS, () => {
        this.#cancelAckFlush = undefined;
        this.#flush();
      });
    } else this.#cancelFlush ??= afterReady(clock, () => this.#flush());
  }

  /**
   * Hands buffered records to the kernel, where they survive a kill of the process. Nothing waits for this: charges
   * wait for a sync, which begins with the same step.
   */
  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    try {
      for (const segment of this.#dirty) flush(segment);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Writes what waits for a segment; one run at a time. */
  #pump(): void {
    this.#pumping ??= this.#drainQueue().then(
      () => this.#pumped(),
      (error) => this.#pumped(error ?? new Error("unknown")),
    );
  }

  #pumped(error?: unknown): void {
    this.#pumping = undefined;
    if (error !== undefined) this.#fail(error);
    else if (this.#queue.length > 0 && !this.#broken) this.#pump();
    this.#requestSync();
  }

  async #drainQueue(): Promise<void> {
    // Even with an empty queue: the first record of a new segment shows whether the disk works again.
    if (!this.#current) await this.#advance();
    for (let entry = this.#queue[0]; entry && !this.#broken; entry = this.#queue[0]) {
      if (this.#put(entry)) this.#queue.shift();
      else await this.#advance();
    }
  }

  /** Switches to the spare segment. */
  async #advance(): Promise<void> {
    if (this.#current) flush(this.#current);
    const next = await this.#spare.take();
    const last = this.#current;
    if (last) {
      this.#previous = { segment: last.number, offset: last.end };
      if (!this.#dirty.has(last) && !last.syncing) this.#retire(last);
    }
    this.#current = next;
    this.#parts.onSegment(next);
    const start: SegmentStart = { number: next.number, previous: this.#previous, progress: this.#parts.progress() };
    this.#put(entryOf(RECORD.segment, this.#parts.nowMs(), encode(start)));
    this.#spare.keep();
  }

  #requestSync(): void {
    const wanted =
      this.#waiters.length > 0 || this.#problem || (this.#parts.fsync === "always" && this.#dirty.size > 0);
    if (!wanted || this.#syncing || this.#cancelGroup || this.#pumping || this.#broken || this.#closed) return;
    const { clock, fsync } = this.#parts;
    const run = (): void => {
      this.#cancelGroup = undefined;
      void this.#sync();
    };
    const isGrouped = fsync === "group" && this.#isBusy;
    const waitMs = isGrouped ? this.#syncedAtMs + GROUP_MS - clock.monotonicMs() : 0;
    // After everything that arrived in this turn has been written.
    this.#cancelGroup = waitMs > 0 ? clock.after(waitMs, run) : afterTurn(clock, run);
  }

  #sync(): Promise<void> {
    this.#syncing ??= this.#syncAll().then(() => {
      this.#syncing = undefined;
      this.#requestSync();
    });
    return this.#syncing;
  }

  async #syncAll(): Promise<void> {
    this.#syncedAtMs = this.#parts.clock.monotonicMs();
    const epoch = this.#epoch;
    const waiters = placedFirst(this.#waiters, waitersEntry);
    this.#waiters = waiters.all;
    this.#isBusy = waiters.placed > 1;
    const acks = placedFirst(this.#acks, itself);
    this.#acks = acks.all;
    // Oldest first: after a power failure in between, no record is on the disk without the records before it.
    const segments = [...this.#dirty].map((segment) => ({ segment, end: segment.next }));
    this.#dirty.clear();
    let failure: unknown;
    for (const { segment } of segments) failure ??= await this.#syncOne(segment);
    const isGivenUp = epoch !== this.#epoch;
    if (!isGivenUp && failure === undefined) return this.#synced(segments, waiters.placed, acks.placed);
    for (const { segment } of segments) if (segment !== this.#current) this.#retire(segment);
    if (!isGivenUp) this.#fail(failure);
  }

  async #syncOne(segment: OpenSegment): Promise<unknown> {
    segment.syncing = true;
    try {
      flush(segment);
      await segment.file.sync();
      return undefined;
    } catch (error) {
      return error ?? new Error("unknown");
    } finally {
      segment.syncing = false;
      if (segment.retired) close(segment.file);
    }
  }

  /** @param waiters how many of the first waiters this sync was for; @param acks likewise for ACKs. */
  #synced(segments: readonly { segment: OpenSegment; end: number }[], waiters: number, acks: number): void {
    this.#acks = this.#acks.slice(acks);
    for (const { segment, end } of segments) {
      segment.synced = end;
      if (segment !== this.#current && !this.#dirty.has(segment)) this.#retire(segment);
    }
    if (this.#queue.length === 0 && this.#current) this.#isWell();
    const synced = this.#waiters;
    this.#waiters = synced.slice(waiters);
    for (let at = 0; at < waiters; at++) {
      const waiter = synced[at];
      if (waiter) waiter.entry.kept = 0;
      waiter?.resolve();
    }
  }

  /** Ends the state after a failure: all live records have been rewritten and are on the disk. */
  #isWell(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#problem = undefined;
    for (const entry of this.#parts.live()) entry.kept = 0;
  }

  /** Gives up the descriptors in use and rewrites all live records. */
  #fail(error: unknown): void {
    // A scheduled sync would see only a part of the rewritten records and treat it as all of them.
    this.#cancelGroup?.();
    this.#cancelGroup = undefined;
    this.#epoch++;
    this.#failures++;
    this.#problem = `the journal could not be written: ${errorText(error)}`;
    this.#parts.alarm("a journal segment failed; its records are written to a new one", error);
    for (const segment of this.#dirty) if (segment !== this.#current) this.#retire(segment);
    if (this.#current) {
      this.#previous = { segment: this.#current.number, offset: this.#current.synced };
      this.#retire(this.#current);
    }
    this.#current = undefined;
    this.#dirty = new Set();
    // A sync proves nothing about records in a segment that is given up.
    for (const ack of this.#acks) ack.segment = 0;
    if (this.#failures > 1) this.#break(error);
    else this.#rewrite();
  }

  #rewrite(): void {
    const waiting = this.#waiters.map(({ entry }) => entry);
    // ACKs last: an ACK before its own records would make the charge look unacknowledged at the next start.
    const again = new Set([...this.#parts.live(), ...waiting, ...this.#queue, ...this.#acks]);
    for (const entry of again) isWrittenAgain(entry);
    this.#queue = [...again];
    this.#pump();
  }

  #break(error: unknown): void {
    this.#broken = true;
    this.#queue = [];
    this.#parts.alarm("the journal is broken: new requests are refused", error);
    this.#rejectAll(this.#problem ?? "the journal is broken");
    this.#parts.clock.after(RETRY_MS, () => {
      if (this.#closed) return;
      this.#broken = false;
      this.#failures = 1;
      this.#rewrite();
    });
  }

  #rejectAll(reason: string): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(new JournalBrokenError(reason));
  }

  #retire(segment: OpenSegment): void {
    if (segment.retired) return;
    segment.retired = true;
    segment.unwritten.clear();
    if (!segment.syncing) close(segment.file);
  }
}

/** Throws the disk's error. The caller then gives the segment up and rewrites the live records to another one. */
function flush(segment: OpenSegment): void {
  const { unwritten, end, next, file } = segment;
  if (unwritten.length === 0) return;
  file.write(end, unwritten.take());
  segment.end = next;
}

function close(file: DiskFile): void {
  try {
    file.close();
  } catch {
    // What matters was synced before; a descriptor that cannot be closed is left to the kernel.
  }
}
