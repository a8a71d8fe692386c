/**
 * One verification pass: reads the journal in the order in which it was written, and hands over every acknowledged
 * charge as soon as its ACK has reached a given age.
 */
import { SETTLED_IDS_MAX } from "../../store/settlement.ts";
import { TransientMap } from "../../values/collections/transient.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { AdminRecord } from "../journal.ts";
import { HEAD_BYTES, type JournalFrame, PAYLOAD_BYTES_MAX, RECORD } from "./frame.ts";
import type { JournalLog } from "./open.ts";
import { decodeAck, decodeAdmin, type JournalPosition, readCharge } from "./payload.ts";
import { type Segment, scan } from "./segments.ts";
import type { PlacedCharge } from "./set-aside.ts";

const CHUNK_BYTES = 256 * 1024;
const FRAME_BYTES_MAX = HEAD_BYTES + PAYLOAD_BYTES_MAX;

interface PassParts {
  readonly log: Pick<JournalLog, "segments" | "read" | "nowMs">;
  /** The age at which this pass processes an ACK. */
  readonly delayMs: number;
  /**
   * Takes at most SETTLED_IDS_MAX charges. Rejects with StoreError while the store is unavailable; the pass then stays
   * where it is.
   */
  readonly verify: (charges: readonly PlacedCharge[]) => Promise<void>;
  readonly verifyAdmin: (record: AdminRecord, segment: number) => Promise<void>;
  /**
   * The first segment that this process writes, if its store cannot lose acknowledged writes while the process lives.
   * From this segment on nothing is verified. Undefined: everything is verified.
   */
  readonly ownFrom?: number | undefined;
}

export class VerifyPass {
  readonly #parts: PassParts;
  #place: JournalPosition;
  /** FINALs whose ACK has not been reached yet. */
  readonly #open = new TransientMap<RequestId, PlacedCharge>();
  /** The latest time of the records up to this place; what follows is not older. */
  #latestMs: number;
  #dueAtMs = 0;
  #count = 0;

  constructor(parts: PassParts, from: JournalPosition) {
    this.#parts = parts;
    this.#place = from;
    const before = parts.log.segments().filter(({ number }) => number < from.segment);
    this.#latestMs = before.at(-1)?.lastAtMs ?? 0;
  }

  /** Records that this process has verified in this pass. */
  get count(): number {
    return this.#count;
  }

  /** Whether a record is too young to be processed yet. */
  get isWaiting(): boolean {
    return this.#dueAtMs > 0;
  }

  /** Everything before this position is verified. A later process resumes the pass here. */
  get verified(): JournalPosition {
    let segment = this.#place.segment;
    for (const open of this.#open.values()) segment = Math.min(segment, open.segment);
    const whole = this.#open.size === 0;
    return { segment, offset: whole ? this.#place.offset : 0 };
  }

  /** Advances as far as ACKs are old enough. Rejects with the errors of `verify` and of the disk. */
  async step(): Promise<void> {
    const nowMs = this.#parts.log.nowMs();
    if (nowMs < this.#dueAtMs) return;
    this.#dueAtMs = 0;
    while (await this.#chunk(nowMs)) {
      // The event loop is free for others while each chunk is read and sent.
    }
  }

  /** Processes one chunk. False if there is nothing more to do now. */
  async #chunk(nowMs: number): Promise<boolean> {
    const segments = this.#parts.log.segments();
    const segment = segments.find(({ number }) => number >= this.#place.segment);
    if (!segment) return false;
    // While FINALs of an earlier process are open, go on: their ACKs may be in this process's segments.
    if (this.#open.size === 0 && this.#isOwn(segment.number)) {
      this.#passOver(segments, nowMs);
      return false;
    }
    const offset = segment.number === this.#place.segment ? this.#place.offset : 0;
    if (offset >= segment.end) {
      if (segment === segments.at(-1)) return false;
      this.#place = { segment: segment.number + 1, offset: 0 };
      return true;
    }
    const bytes = await this.#parts.log.read(segment.number, offset, Math.min(CHUNK_BYTES, segment.end - offset));
    const { frames, end } = scan(bytes);
    const later = frames.find((frame) => !this.#isDue(frame, nowMs));
    const due = later ? frames.slice(0, frames.indexOf(later)) : frames;
    await this.#verify(due, segment.number);
    const isLast = offset + bytes.length >= segment.end || bytes.length < CHUNK_BYTES;
    const read = later ? later.from : isLast ? segment.end - offset : Math.max(end, bytes.length - FRAME_BYTES_MAX);
    this.#place = { segment: segment.number, offset: offset + read };
    return later === undefined;
  }

  /**
   * Skips this process's own segments, but leaves records younger than `delayMs` to a later process. It resumes at the
   * start of the segment before the first one with such a record, because the FINALs of that segment's first ACKs are
   * there. A charge whose FINAL is further back than that is not verified.
   */
  #passOver(segments: readonly Segment[], nowMs: number): void {
    const { ownFrom = 0, delayMs } = this.#parts;
    const own = segments.filter(({ number }) => number >= ownFrom);
    const young = own.findIndex(({ lastAtMs }) => lastAtMs + delayMs > nowMs);
    const segment = own[(young < 0 ? own.length - 1 : young) - 1] ?? own[0];
    if (segment && segment.number > this.#place.segment) this.#place = { segment: segment.number, offset: 0 };
  }

  /** Whether a record may be processed now: only ACKs and administrative writes wait. */
  #isDue({ type, atMs }: JournalFrame, nowMs: number): boolean {
    // A record that was written again has its first time, and earlier versions dated records by a clock that jumps.
    this.#latestMs = Math.max(this.#latestMs, atMs);
    if (type !== RECORD.ack && type !== RECORD.admin) return true;
    const dueAtMs = this.#latestMs + this.#parts.delayMs;
    if (nowMs >= dueAtMs) return true;
    this.#dueAtMs = dueAtMs;
    return false;
  }

  async #verify(frames: readonly JournalFrame[], segment: number): Promise<void> {
    const done: RequestId[] = [];
    let charges: PlacedCharge[] = [];
    const send = async (): Promise<void> => {
      const batch = charges;
      charges = [];
      if (batch.length > 0) await this.#parts.verify(batch);
      this.#count += batch.length;
    };
    for (const { type, payload } of frames) {
      const isLookedFor = !this.#isOwn(segment);
      if (type === RECORD.final && isLookedFor) this.#remember(payload, segment);
      const admin = type === RECORD.admin && isLookedFor ? decodeAdmin(payload) : undefined;
      if (admin) {
        // Alone and in order: later charges may need it.
        await send();
        await this.#parts.verifyAdmin(admin, segment);
        this.#count++;
      }
      const ack = type === RECORD.ack ? decodeAck(payload) : undefined;
      const open = ack && this.#open.get(ack.id);
      if (!ack || !open) continue;
      done.push(ack.id);
      if (ack.outcome === "settled") charges.push(open);
      if (charges.length >= SETTLED_IDS_MAX) await send();
    }
    await send();
    for (const id of done) this.#open.delete(id);
  }

  #isOwn(segment: number): boolean {
    return segment >= (this.#parts.ownFrom ?? Number.POSITIVE_INFINITY);
  }

  #remember(payload: Buffer, segment: number): void {
    const charge = readCharge(payload);
    if (charge) this.#open.set(charge.requestId, { charge, segment });
  }
}
