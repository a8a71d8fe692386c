/**
 * One record on disk: a head of 22 bytes, then the payload as compact JSON. Numbers are big-endian.
 *
 *     0  magic    "TGJ1"
 *     4  version  1
 *     5  type     RECORD below
 *     6  zero     two bytes, reserved
 *     8  length   payload bytes
 *    12  at       when it was written, milliseconds of the journal's time (48 bits, journal-time.ts)
 *    18  crc      CRC-32 (zlib) of bytes 4 to 17 and the payload
 *
 * JSON escapes control characters, so no payload can contain the head of a frame.
 */
import { crc32 } from "node:zlib";

export const RECORD = {
  /** The first record of a segment: what must still be known when the segments before it are removed. */
  segment: 1,
  /** A request goes upstream. */
  open: 2,
  /** What the request has produced so far. */
  checkpoint: 3,
  /** The charge. */
  final: 4,
  /** The store has the charge, or it is a dead letter. */
  ack: 5,
  /** An acknowledged administrative write. */
  admin: 6,
  /** How far verification has come, and which store it verified. */
  note: 7,
} as const;

export type RecordType = (typeof RECORD)[keyof typeof RECORD];

export interface JournalFrame {
  readonly type: RecordType;
  readonly atMs: number;
  readonly payload: Buffer;
  /** Where it begins, and where the next one would begin, in the bytes it was read from. */
  readonly from: number;
  readonly end: number;
}

export const MAGIC = Buffer.from("TGJ1");
export const HEAD_BYTES = 22;
/** Maximum payload; a longer record is a defect of the caller. */
export const PAYLOAD_BYTES_MAX = 32 * 1024;

const VERSION = 1;
const CRC_AT = 18;
/** Bytes 4 to 17: version, type, two zeros, length, at. */
const CHECKED_BYTES = CRC_AT - MAGIC.length;
const MAGIC_NUMBER = MAGIC.readUInt32BE();

/** A newer Tollgate wrote here. Continuing could lose charges that only it can read. */
class NewerJournalError extends Error {
  override readonly name = "NewerJournalError";
}

/** Maximum UTF-8 bytes of one UTF-16 unit. */
const UNIT_BYTES_MAX = 3;

/** Whether the payload exceeds PAYLOAD_BYTES_MAX. The bytes are counted only if the text is long enough for that. */
export function isTooLong(payload: string): boolean {
  return payload.length * UNIT_BYTES_MAX > PAYLOAD_BYTES_MAX && Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX;
}

const NOTHING = Buffer.alloc(0);
/** Room for about thirty requests. */
const BATCH_BYTES = 64 * 1024;
/** A larger buffer is freed once it has been written. */
const BATCH_BYTES_KEPT = 1024 * 1024;

/**
 * Records that will be written in one call. Each is encoded directly to its place in one buffer: 1 us per record
 * instead of 1.7 with a buffer for each and one for all.
 */
export class FrameBatch {
  #bytes = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /**
   * Adds a record; false if it is longer than `roomBytes`.
   * @throws RangeError if the payload exceeds PAYLOAD_BYTES_MAX.
   */
  add(type: RecordType, atMs: number, payload: string, roomBytes: number): boolean {
    if (isTooLong(payload)) throw new RangeError(`a journal record of ${Buffer.byteLength(payload)} bytes`);
    const at = this.#length;
    const bytes = this.#withRoom(HEAD_BYTES + payload.length * UNIT_BYTES_MAX);
    const from = at + HEAD_BYTES;
    const end = from + bytes.write(payload, from);
    if (end - at > roomBytes) return false;
    // First written right before the payload, so that one crc32 call covers both: two calls would take 0.15 us more.
    const checkedAt = from - CHECKED_BYTES;
    putChecked(bytes, checkedAt, { type, length: end - from, atMs });
    const sum = crc32(bytes.subarray(checkedAt, end));
    putChecked(bytes, at + MAGIC.length, { type, length: end - from, atMs });
    bytes.writeUInt32BE(MAGIC_NUMBER, at);
    bytes.writeUInt32BE(sum, at + CRC_AT);
    this.#length = end;
    return true;
  }

  /** Returns the records and empties the batch. The next `add` overwrites the returned bytes. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    if (this.#bytes.length > BATCH_BYTES_KEPT) this.#bytes = NOTHING;
    return taken;
  }

  /** Drops the records and frees the memory. */
  clear(): void {
    this.#length = 0;
    this.#bytes = NOTHING;
  }

  #withRoom(bytes: number): Buffer {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return this.#bytes;
    const larger = Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES, 2 * needed));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    return larger;
  }
}

/** Writes bytes 4 to 17 of a frame. */
function putChecked(
  bytes: Buffer,
  at: number,
  { type, length, atMs }: { readonly type: RecordType; readonly length: number; readonly atMs: number },
): void {
  bytes.writeUInt16BE(VERSION * 256 + type, at);
  bytes.writeUInt16BE(0, at + 2);
  bytes.writeUInt32BE(length, at + 4);
  bytes.writeUIntBE(Math.max(0, Math.trunc(atMs)), at + 8, 6);
}

/**
 * Reads the frame at `from`; undefined if there is no valid one.
 * @throws NewerJournalError on a valid frame of a later version.
 */
export function decodeFrame(bytes: Buffer, from: number): JournalFrame | undefined {
  if (from + HEAD_BYTES > bytes.length) return undefined;
  for (let at = 0; at < MAGIC.length; at++) if (bytes[from + at] !== MAGIC[at]) return undefined;
  const length = bytes.readUInt32BE(from + 8);
  const end = from + HEAD_BYTES + length;
  if (length > PAYLOAD_BYTES_MAX || end > bytes.length) return undefined;
  const payload = bytes.subarray(from + HEAD_BYTES, end);
  const checked = bytes.subarray(from + MAGIC.length, from + CRC_AT);
  if (bytes.readUInt32BE(from + CRC_AT) !== crc32(payload, crc32(checked))) return undefined;
  const version = bytes.readUInt8(from + 4);
  if (version !== VERSION) throw new NewerJournalError(`the journal has records of version ${version}`);
  const type = bytes.readUInt8(from + 5) as RecordType;
  return { type, atMs: bytes.readUIntBE(from + 12, 6), payload, from, end };
}
