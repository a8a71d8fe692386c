/** Records on their way to the disk, and the records of requests that are not acknowledged yet. */

import { TransientList, TransientMap } from "../../values/collections/transient.ts";
import type { RequestId } from "../../values/request-id.ts";
import { RECORD, type RecordType } from "./frame.ts";

/** One record on its way to the disk, or on it. */
export interface Entry {
  readonly type: RecordType;
  readonly atMs: number;
  /** JSON. */
  readonly payload: string;
  /** The segment of its latest copy; 0 while there is none. */
  segment: number;
  /**
   * The segment of an earlier copy, which must stay until the latest copy is known to be on the disk; 0 if the latest
   * copy is known to be there or is the first.
   */
  kept: number;
}

export function entryOf(type: RecordType, atMs: number, payload: string, segment = 0): Entry {
  return { type, atMs, payload, segment, kept: 0 };
}

/** From about this age on, V8 has a CHECKPOINT in its old generation or soon will. */
const LASTING_MS = 500;

/**
 * The last CHECKPOINT of a stream that has had one for a while; the next one overwrites it in place. With a new string
 * per second and stream, V8 would have moved each to the old generation before the next one came, where only a full
 * collection frees it: 2,000 streams left 4 MB of garbage per second.
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

  /**
   * Leaves `segment` as it is: until the new checkpoint is written, the previous one is what the disk has of this
   * stream.
   */
  replace(atMs: number, payload: string): void {
    this.atMs = atMs;
    this.#length = Buffer.byteLength(payload);
    // Not from Node's 64 KB pool, because one slice would keep all of it in memory. With some room for numbers to grow.
    if (this.#bytes.length < this.#length) this.#bytes = Buffer.allocUnsafeSlow(this.#length + 64);
    this.#bytes.write(payload);
  }
}

/** @param before the checkpoint that it replaces; undefined if it is the first. */
function checkpointAfter(before: Entry | undefined, atMs: number, payload: string): Entry {
  const isLasting = before instanceof LastingCheckpoint;
  if (!isLasting && (before === undefined || atMs - before.atMs < LASTING_MS)) {
    return entryOf(RECORD.checkpoint, atMs, payload);
  }
  const lasting = isLasting ? before : new LastingCheckpoint();
  lasting.replace(atMs, payload);
  return lasting;
}

/** Marks the record for rewriting. Until the new copy is on the disk, the segment of the earlier copy must stay. */
export function isWrittenAgain(entry: Entry): void {
  entry.kept ||= entry.segment;
  entry.segment = 0;
}

/** The records of one request that the journal must not lose. */
interface Request {
  open: Entry | undefined;
  checkpoint: Entry | undefined;
  /** Its FINAL, as its node in the list of charges. */
  charge: ReturnType<TransientList<Entry>["add"]> | undefined;
}

/** Requests without an ACK, oldest first. */
export class Unsettled {
  readonly #requests = new TransientMap<RequestId, Request>();
  /** FINALs of the requests that have one, in order. */
  readonly #charges = new TransientList<Entry>();

  /** Number of requests, including running ones. */
  get count(): number {
    return this.#requests.size;
  }

  /** Number of charges that the store has not acknowledged yet. */
  get charges(): number {
    return this.#charges.size;
  }

  /** When the oldest charge was made, by the journal's time. */
  get oldestMs(): number | undefined {
    return this.#charges.first?.atMs;
  }

  /**
   * Replaces a running request's checkpoint.
   * @returns the record to write; undefined if the request is unknown or has its FINAL.
   */
  checkpoint(id: RequestId, atMs: number, payload: string): Entry | undefined {
    const request = this.#requests.get(id);
    if (request === undefined || request.charge !== undefined) return undefined;
    request.checkpoint = checkpointAfter(request.checkpoint, atMs, payload);
    return request.checkpoint;
  }

  /** Adds an OPEN, CHECKPOINT or FINAL; a later record of the same type replaces the earlier one. */
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

  /** Removes a request. False if it is unknown or already removed. */
  remove(id: RequestId): boolean {
    const charge = this.#requests.get(id)?.charge;
    if (charge) this.#charges.delete(charge);
    return this.#requests.delete(id);
  }

  /** Each request's latest record: its FINAL, else its last CHECKPOINT, else its OPEN. */
  *lastWords(): Generator<{ readonly id: RequestId; readonly entry: Entry }> {
    for (const [id, { open, checkpoint, charge }] of this.#requests.entries()) {
      const entry = charge?.value ?? checkpoint ?? open;
      if (entry) yield { id, entry };
    }
  }

  /** Every record that must be on the disk, in an order in which they may be rewritten. */
  *entries(): Generator<Entry> {
    for (const { open, checkpoint, charge } of this.#requests.values()) {
      if (open) yield open;
      if (checkpoint) yield checkpoint;
      if (charge?.value) yield charge.value;
    }
  }
}
