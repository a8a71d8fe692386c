/** CRC-32C (Castagnoli, RFC 3720 appendix B.4), table-driven, eight bytes a step: the checksum of every journal record. */

/** The polynomial 0x1EDC6F41, bit-reversed. */
const POLYNOMIAL = 0x82f63b78;
const SLICES = 8;

/** `TABLES[k * 256 + b]` is the checksum of byte b followed by k zero bytes. */
const TABLES = makeTables();

function makeTables(): Int32Array {
  const tables = new Int32Array(SLICES * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[byte] = crc;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256] as number;
    tables[at] = (before >>> 8) ^ (tables[before & 0xff] as number);
  }
  return tables;
}

/**
 * The checksum of `bytes[from, to)`, going on from `before` where the data comes in several pieces.
 * @returns an unsigned 32-bit number.
 */
export function crc32c(bytes: Uint8Array, from = 0, to = bytes.length, before = 0): number {
  let crc = ~before;
  let at = from;
  const table = (slice: number, byte: number): number => TABLES[slice * 256 + byte] as number;
  const byteAt = (index: number): number => bytes[index] as number;
  for (; at + SLICES <= to; at += SLICES) {
    crc ^= byteAt(at) | (byteAt(at + 1) << 8) | (byteAt(at + 2) << 16) | (byteAt(at + 3) << 24);
    crc =
      table(7, crc & 0xff) ^
      table(6, (crc >>> 8) & 0xff) ^
      table(5, (crc >>> 16) & 0xff) ^
      table(4, crc >>> 24) ^
      table(3, byteAt(at + 4)) ^
      table(2, byteAt(at + 5)) ^
      table(1, byteAt(at + 6)) ^
      table(0, byteAt(at + 7));
  }
  for (; at < to; at++) crc = (crc >>> 8) ^ table(0, (crc ^ byteAt(at)) & 0xff);
  return ~crc >>> 0;
}
