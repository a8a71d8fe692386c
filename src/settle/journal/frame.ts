/**
 * One record on disk: a head of 22 bytes, then the payload as compact JSON. Numbers are big-endian.
 *
 *     0  magic    "TGJ1"
 *     4  version  1
 *     5  type     RECORD below
 *     6  zero     two bytes, reserved
 *     8  length   payload bytes
 *    12  at       when it was written, milliseconds since the epoch (48 bits)
 *    18  crc      CRC-32 (zlib) of bytes 4 to 17 and the payload
 *
 * JSON escapes control characters, so that no payload can contain the head of a frame.
 */
import { crc32 } from "node:zlib";

export const RECORD = {
  /** The first record of a segment: what must outlive the segments before it. */
  segment: 1,
  /** A request goes upstream. */
  open: 2,
  /** What it has produced so far. */
  checkpoint: 3,
  /** The charge. */
  final: 4,
  /** The store has the charge, or it has become a dead letter. */
  ack: 5,
  /** An administrative write that was acknowledged. */
  admin: 6,
  /** How far verification has come, and which store it has verified. */
  note: 7,
} as const;

export type RecordType = (typeof RECORD)[keyof typeof RECORD];

export interface JournalFrame {
  readonly type: RecordType;
  readonly atMs: number;
  readonly payload: Buffer;
  /** Where it begins, and where the next one would, in the bytes it was read from. */
  readonly from: number;
  readonly end: number;
}

export const MAGIC = Buffer.from("TGJ1");
export const HEAD_BYTES = 22;
/** Largest payload; a longer record is a defect of the caller. */
export const PAYLOAD_BYTES_MAX = 32 * 1024;

const VERSION = 1;
const CRC_AT = 18;

/** Bytes 4 to 17 of the frame that is being made: version, type, two zeros, length, at. */
const CHECKED = Buffer.alloc(CRC_AT - MAGIC.length).fill(VERSION, 0, 1);

/** A newer Tollgate wrote here; going on could lose charges that only it can read. */
class NewerJournalError extends Error {
  override readonly name = "NewerJournalError";
}

/** @throws RangeError when the payload is beyond PAYLOAD_BYTES_MAX. */
export function encodeFrame(type: RecordType, atMs: number, payload: string): Buffer {
  const bytes = Buffer.byteLength(payload);
  if (bytes > PAYLOAD_BYTES_MAX) throw new RangeError(`a journal record of ${bytes} bytes`);
  const frame = Buffer.allocUnsafe(HEAD_BYTES + bytes);
  frame.set(MAGIC, 0);
  CHECKED.writeUInt8(type, 1);
  CHECKED.writeUInt32BE(bytes, 4);
  CHECKED.writeUIntBE(Math.max(0, Math.trunc(atMs)), 8, 6);
  frame.set(CHECKED, 4);
  frame.write(payload, HEAD_BYTES);
  frame.writeUInt32BE(crc32(frame.subarray(HEAD_BYTES), crc32(CHECKED)), CRC_AT);
  return frame;
}

/**
 * Reads the frame at `from`; undefined when no valid one is there.
 * @throws NewerJournalError on a valid frame of a later version.
 */
export function decodeFrame(bytes: Buffer, from: number): JournalFrame | undefined {
  if (from + HEAD_BYTES > bytes.length) return undefined;
  for (let at = 0; at < MAGIC.length; at++) if (bytes[from + at] !== MAGIC[at]) return undefined;
  const length = bytes.readUInt32BE(from + 8);
  const end = from + HEAD_BYTES + length;
  if (length > PAYLOAD_BYTES_MAX || end > bytes.length) return undefined;
  if (bytes.readUInt32BE(from + CRC_AT) !== checksum(bytes, from, end)) return undefined;
  const version = bytes.readUInt8(from + 4);
  if (version !== VERSION) throw new NewerJournalError(`the journal has records of version ${version}`);
  const type = bytes.readUInt8(from + 5) as RecordType;
  return { type, atMs: bytes.readUIntBE(from + 12, 6), payload: bytes.subarray(from + HEAD_BYTES, end), from, end };
}

function checksum(bytes: Buffer, from: number, end: number): number {
  return crc32(bytes.subarray(from + HEAD_BYTES, end), crc32(bytes.subarray(from + 4, from + CRC_AT)));
}
