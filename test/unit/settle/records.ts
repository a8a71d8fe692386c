/** A journal as it is read: records with the times that a test gives them, in segments that the test ends. */
import { FrameBatch, RECORD, type RecordType } from "../../../src/settle/journal/frame.ts";
import { encodeCharge } from "../../../src/settle/journal/payload.ts";
import type { Segment } from "../../../src/settle/journal/segments.ts";
import type { AckOutcome } from "../../../src/settle/journal.ts";
import { askOf, idOf } from "./rig.ts";

/** The bytes of one record. */
export function frameOf(type: RecordType, atMs: number, payload: string): Buffer {
  const batch = new FrameBatch();
  batch.add(type, atMs, payload, Number.POSITIVE_INFINITY);
  return batch.take();
}

export class Records {
  readonly #segments: Buffer[] = [Buffer.alloc(0)];

  final(number: number, atMs: number): this {
    return this.#add(RECORD.final, atMs, encodeCharge(askOf(number), {}));
  }

  ack(number: number, atMs: number, outcome: AckOutcome = "settled"): this {
    return this.#add(RECORD.ack, atMs, JSON.stringify({ id: idOf(number), outcome }));
  }

  /** A charge and its ACK, this much later. */
  charge(number: number, atMs: number, ackedAfterMs = 0): this {
    return this.final(number, atMs).ack(number, atMs + ackedAfterMs);
  }

  admin(id: string, atMs: number): this {
    return this.#add(RECORD.admin, atMs, JSON.stringify({ kind: "credit", id, payload: {} }));
  }

  /** Starts the next segment. */
  next(): this {
    this.#segments.push(Buffer.alloc(0));
    return this;
  }

  segments(): readonly Segment[] {
    return this.#segments.map(({ length }, at) => ({ number: at + 1, end: length }) as Segment);
  }

  async read(segment: number, offset: number, bytes: number): Promise<Buffer> {
    return (this.#segments[segment - 1] as Buffer).subarray(offset, offset + bytes);
  }

  #add(type: RecordType, atMs: number, payload: string): this {
    const last = this.#segments.pop() as Buffer;
    this.#segments.push(Buffer.concat([last, frameOf(type, atMs, payload)]));
    return this;
  }
}
