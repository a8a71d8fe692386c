/** Records on their way to the disk, and those of requests that nobody has acknowledged yet. */

import { TransientList, TransientMap } from "../../values/collections/transient.ts";
import type { RequestId } from "../../values/request-id.ts";
import { RECORD, type RecordType } from "./frame.ts";

/** One record on its way to the disk, or there. */
export interface Entry {
  readonly type: RecordType;
  readonly atMs: number;
  /** JSON. */
  readonly payload: string;
  /** Where it was written last; 0 while it is not. */
  segment: number;
  /** Where its copy is that a disk may still have while the last one is not known to last; 0 while that one is known to, or is the first. */
  kept: number;
}

export function entryOf(type: RecordType, atMs: number, payload: string, segment = 0): Entry {
  return { type, atMs, payload, segment, kept: 0 };
}

/** How old a CHECKPOINT is when V8 has it among the old objects, or soon will. */
const LASTING_MS = 500;

/**
 * The last CHECKPOINT of a stream that has had one for a while. The next one is written over it: a text of each second of each
 * stream would be old to V8 by the time that the next one comes, and only a collection of the whole heap takes it away. 2,000
 * streams left 4 MB a second.
 */
class LastingCheckpoint implements Entry {
  readonly type = RECORD.checkpoint;
  atMs = 0;
  segment = 0;
  kept = 0;
  #bytes = Buffer.alloc(0);
  #length = 0;

  get payload(): string {
    return this.#bytes.toString("utf8", 0, this.#length);
  }

  /** Until it is written, where the one before it was written is what a disk has of this stream. */
  replace(atMs: number, payload: string): void {
    this.atMs = atMs;
    this.#length = Buffer.byteLength(payload);
    // A piece of its own: of those that Node cuts from 64 KB one would keep all. It has room for some more digits.
    if (this.#bytes.length < this.#length) this.#bytes = Buffer.allocUnsafeSlow(this.#length + 64);
    this.#bytes.write(payload);
  }
}

/** @param before the one that it takes the place of; undefined: it is the first one. */
function checkpointAfter(before: Entry | undefined, atMs: number, payload: string): Entry {
  const isLasting = before instanceof LastingCheckpoint;
  if (!isLasting && (before === undefined || atMs - before.atMs < LASTING_MS)) {
    return entryOf(RECORD.checkpoint, atMs, payload);
  }
  const lasting = isLasting ? before : new LastingCheckpoint();
  lasting.replace(atMs, payload);
  return lasting;
}

/** Has the record written once more: until that is on the disk, the copy before it is not to go. */
export function isWrittenAgain(entry: Entry): void {
  entry.kept ||= entry.segment;
  entry.segment = 0;
}

/** What the journal must not lose of one request. */
interface Request {
  open: Entry | undefined;
  checkpoint: Entry | undefined;
  /** Its FINAL, by its place among the charges. */
  charge: ReturnType<TransientList<Entry>["add"]> | undefined;
}

/** Requests without an ACK, oldest first. */
export class Unsettled {
  readonly #requests = new TransientMap<RequestId, Request>();
  /** Those that have their FINAL, in its order. */
  readonly #charges = new TransientList<Entry>();

  /** Requests, running ones too. */
  get count(): number {
    return this.#requests.size;
  }

  /** Charges that the store has not taken yet. */
  get charges(): number {
    return this.#charges.size;
  }

  /** When the oldest charge was made, milliseconds since the epoch. */
  get oldestMs(): number | undefined {
    return this.#charges.first?.atMs;
  }

  /**
   * Takes what a running request has produced so far, in place of what it had.
   * @returns what is to be written; undefined when the request is not known, or has its FINAL.
   */
  checkpoint(id: RequestId, atMs: number, payload: string): Entry | undefined {
    const request = this.#requests.get(id);
    if (request === undefined || request.charge !== undefined) return undefined;
    request.checkpoint = checkpointAfter(request.checkpoint, atMs, payload);
    return request.checkpoint;
  }

  /** Takes OPEN, CHECKPOINT or FINAL; a later one of a kind replaces the one before. */
  add(id: RequestId, entry: Entry): void {
    let request = this.#requests.get(id);
    if (!request) {
      request = { open: undefined, checkpoint: undefined, charge: undefined };
      this.#requests.set(id, request);
    }
    if (entry.type === RECORD.open) request.open = entry;
    else if (entry.type === RECORD.checkpoint) request.checkpoint = entry;
    else if (request.charge) request.charge.value = entry;
    else request.charge = this.#charges.add(entry);
  }

  /** False when it is not known, or no longer. */
  remove(id: RequestId): boolean {
    const charge = this.#requests.get(id)?.charge;
    if (charge) this.#charges.delete(charge);
    return this.#requests.delete(id);
  }

  /** Each request's last word: its FINAL, else its last CHECKPOINT, else its OPEN. */
  *lastWords(): Generator<{ readonly id: RequestId; readonly entry: Entry }> {
    for (const [id, { open, checkpoint, charge }] of this.#requests.entries()) {
      const entry = charge?.value ?? checkpoint ?? open;
      if (entry) yield { id, entry };
    }
  }

  /** Every record that must be on the disk, in an order in which it may be written again. */
  *entries(): Generator<Entry> {
    for (const { open, checkpoint, charge } of this.#requests.values()) {
      if (open) yield open;
      if (checkpoint) yield checkpoint;
      if (charge?.value) yield charge.value;
    }
  }
}
