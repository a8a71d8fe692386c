/**
 * Writes records into preallocated segments and says when they are on the disk.
 *
 * One rule above all (docs/failure-model.md row F2): a descriptor on which a write or a sync has failed is never
 * trusted again. A new segment is opened and every record that matters is written once more; when that fails too the
 * journal is broken, says so, and tries again until it is not.
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
 * Syncs of a busy journal begin this far apart; with the sync itself a charge waits under 5 ms on a healthy disk. A journal
 * whose last sync had one waiter is not busy: the next one does not wait for company (half of 4 ms of each charge).
 */
const GROUP_MS = 4;
/**
 * An ACK goes along with what is written next, or after so long: one that a kill takes is asked for again, and the store says that
 * it has the charge. A write of its own takes 4 us, and 13 while a sync runs.
 */
const ACK_MS = 100;
/**
 * Records that wait for a segment to be made; beyond it the disk is too slow to be of use. Those of requests that run join them
 * still, except for checkpoints: the journal keeps each of them in memory anyway, and an ACK that is lost is of a charge for ever
 * unsettled.
 */
const QUEUE_MAX = 10_000;
const SLOW = "the journal's disk is too slow: records wait for their segment";

interface WriterParts extends SpareParts {
  readonly fsync: "group" | "always";
  /** Where the last segment of an earlier process ended. */
  readonly previous: JournalPosition | undefined;
  /** Records that are written again to a new segment when a file fails, so that they stay on the disk. */
  readonly live: () => Iterable<Entry>;
  /** What a new segment says about the ones before it. */
  readonly progress: () => SegmentStart["progress"];
  readonly onSegment: (segment: Segment) => void;
}

interface Waiter {
  readonly entry: Entry;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Those that are in a segment first, and how many they are; the others wait for a new segment. So a sync that ends finds what it was
 * for by counting, also among those that have come meanwhile: nothing leaves from among the first until then, but all of them do
 * where the disk fails (`#epoch`).
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
  /** Written to, and not synced since. */
  #dirty = new Set<OpenSegment>();
  /** Records for which there was no segment at once. */
  #queue: Entry[] = [];
  #waiters: Waiter[] = [];
  /** ACKs that are not on the disk yet. Nobody waits for them, but without its ACK no charge is verified. */
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
  /** Grows with each descriptor that is given up: what was under way then proves nothing. */
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

  /** Makes the first segment. @throws as the disk does. */
  async start(): Promise<void> {
    await this.#advance();
  }

  /** Why no new request may rely on this journal; undefined while all is well. */
  get problem(): string | undefined {
    return this.#problem ?? this.#spare.problem ?? (this.#isSlow ? SLOW : undefined);
  }

  /** Whether what was written is being written again, after a failure: what holds it must stay. */
  get isMending(): boolean {
    return this.#failures > 0;
  }

  get #isSlow(): boolean {
    return this.#queue.length >= QUEUE_MAX;
  }

  /** The segment that is being written; 0 when there is none. */
  get segment(): number {
    return this.#current?.number ?? 0;
  }

  /** Whether a segment is kept ready that holds nothing yet. */
  get hasSpare(): boolean {
    return this.#spare.exists;
  }

  /** Writes with this turn of the loop where there is room. False when nothing can be written now. */
  append(entry: Entry): boolean {
    if (isTooLong(entry.payload)) throw new RangeError(`a journal record beyond ${PAYLOAD_BYTES_MAX} bytes`);
    if (entry.type === RECORD.ack) this.#acks.push(entry);
    if (this.#broken || this.#closed) return false;
    if (this.#isSlow && entry.type === RECORD.checkpoint) return false;
    if (this.#queue.length === 0 && this.#put(entry)) {
      // The client has what this one is about: a kill in the same turn must not make it free.
      if (entry.type === RECORD.checkpoint) this.#flush();
    } else {
      this.#queue.push(entry);
      this.#pump();
    }
    if (this.#parts.fsync === "always") this.#requestSync();
    return !this.#broken;
  }

  /** Resolves when the record is on the disk. Rejects with JournalBrokenError when it cannot be brought there. */
  write(entry: Entry): Promise<void> {
    isWrittenAgain(entry);
    if (isTooLong(entry.payload)) return Promise.reject(new JournalBrokenError("the record is too long"));
    if (this.#isSlow && !this.#broken) {
      // A charge is written all the same, when there is room; it does not wait for that.
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

  /** Syncs what was written, closes every file, and takes the unused segment away. */
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
      // The sync has failed, and what matters is being written to another segment.
      await this.#pumping;
      await this.#sync();
    }
    for (const segment of new Set([...this.#dirty, ...(this.#current ? [this.#current] : [])])) this.#retire(segment);
    this.#rejectAll("the journal is closed");
    await this.#spare.close();
  }

  /**
   * Puts a record at the end of the segment, where it fits; what requests that go together have to say is written in one piece.
   */
  #put(entry: Entry): boolean {
    const segment = this.#current;
    if (!segment?.unwritten.add(entry.type, entry.atMs, entry.payload, segment.bytes - segment.next)) return false;
    this.#dirty.add(segment);
    segment.next = segment.end + segment.unwritten.length;
    segment.lastAtMs = entry.atMs;
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
   * Gives the kernel what is in memory, from where a kill of the process cannot take it. Nobody waits for it: a sync, which charges do
   * wait for, begins with the same.
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
    // With nothing to write, a new segment's first record shows whether the disk is well again.
    if (!this.#current) await this.#advance();
    for (let entry = this.#queue[0]; entry && !this.#broken; entry = this.#queue[0]) {
      if (this.#put(entry)) this.#queue.shift();
      else await this.#advance();
    }
  }

  /** Goes on to the segment that was kept ready. */
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
    const atMs = this.#parts.clock.wallMs();
    this.#put(entryOf(RECORD.segment, atMs, encode(start)));
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
    // Not before everything that came in with this turn has been written.
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
    // Oldest first, so that a record never lasts longer than those before it if the power goes in between.
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

  /** @param waiters so many of the first ones have waited for this; @param acks likewise. */
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

  /** After a failure: all that matters has been written again, and is on the disk. */
  #isWell(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#problem = undefined;
    for (const entry of this.#parts.live()) entry.kept = 0;
  }

  /** Gives up the descriptors in use and writes everything that matters once more. */
  #fail(error: unknown): void {
    // It would find a part of what is written again, and take that for all of it.
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
    // A sync that has been asked for already proves nothing of what was written to a segment that is given up.
    for (const ack of this.#acks) ack.segment = 0;
    if (this.#failures > 1) this.#break(error);
    else this.#rewrite();
  }

  #rewrite(): void {
    const waiting = this.#waiters.map(({ entry }) => entry);
    // No ACK before what it is about: that would be asked for again.
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

/** Throws as the disk does; then the segment is given up, and what matters of it is written to another one. */
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
    // What matters was synced before; a descriptor that cannot be closed is the kernel's to keep.
  }
}
