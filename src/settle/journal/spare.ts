/**
 * Prepares the next segment before it is needed, so that a full disk is noticed in time (docs/failure-model.md row F1).
 */
import { errorText } from "../../values/program/error-text.ts";
import type { Clock } from "../../values/time.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { FrameBatch } from "./frame.ts";
import { type Segment, segmentName } from "./segments.ts";

/** How long after a disk failure the next attempt follows. */
export const RETRY_MS = 1_000;

/** A segment that is being written or will be. */
export interface OpenSegment extends Segment {
  readonly file: DiskFile;
  /** Records not written yet. They go from `end`, where the written records end, to `next`. */
  readonly unwritten: FrameBatch;
  /** Where the next record goes. */
  next: number;
  /** Everything before this offset is known to be on the disk. */
  synced: number;
  syncing: boolean;
  /** No longer written; closed as soon as no sync runs. */
  retired: boolean;
}

export interface SpareParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly segmentBytes: number;
  /** The number of the first segment to make. */
  readonly next: number;
  /** Whether one more segment is allowed. */
  readonly hasRoom: () => boolean;
  readonly alarm: (message: string, error?: unknown) => void;
}

/** Keeps one segment ready. */
export class SpareSegment {
  readonly #parts: SpareParts;
  #next: number;
  #spare: Promise<OpenSegment> | undefined;
  #closed = false;
  #problem: string | undefined;

  constructor(parts: SpareParts) {
    this.#parts = parts;
    this.#next = parts.next;
  }

  /** Why there is no spare segment; undefined while there is one or one is being made. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get exists(): boolean {
    return this.#spare !== undefined;
  }

  /** Returns the spare segment, or makes one now if there is none. Rejects with the disk's error. */
  take(): Promise<OpenSegment> {
    const spare = this.#spare ?? this.#make();
    this.#spare = undefined;
    return spare;
  }

  /** Makes a spare segment unless there is one; retries until it succeeds. */
  keep(): void {
    if (this.#spare || this.#closed) return;
    const spare = this.#make();
    this.#spare = spare;
    spare.then(
      () => {
        this.#problem = undefined;
      },
      (error: unknown) => {
        if (this.#spare === spare) this.#spare = undefined;
        if (!this.#problem) this.#parts.alarm("the journal has no room for its next segment", error);
        this.#problem = `no room for the next journal segment: ${errorText(error)}`;
        this.#parts.clock.after(RETRY_MS, () => this.keep());
      },
    );
  }

  /** Removes the unused segment. */
  async close(): Promise<void> {
    this.#closed = true;
    const spare = await this.#spare?.catch(() => undefined);
    this.#spare = undefined;
    if (!spare) return;
    spare.file.close();
    await this.#parts.disk.remove(segmentName(spare.number)).catch(() => undefined);
  }

  async #make(): Promise<OpenSegment> {
    const { disk, segmentBytes, hasRoom } = this.#parts;
    if (!hasRoom()) throw new Error("journal.bytes_max is used up");
    const number = this.#next++;
    const file = await disk.create(segmentName(number), segmentBytes);
    const states = {
      unwritten: new FrameBatch(),
      next: 0,
      end: 0,
      synced: 0,
      lastAtMs: 0,
      used: false,
      syncing: false,
      retired: false,
    };
    return { number, bytes: segmentBytes, file, ...states };
  }
}
