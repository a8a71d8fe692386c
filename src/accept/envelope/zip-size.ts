/**
 * How much there is in a ZIP file (documents, sheets and slides of office programs are ZIP files), as an upper estimate: the
 * sizes that it names are the sender's to choose, so what it holds is unpacked, within a budget. A file that cannot be read is
 * not believed to be small. Source of the format: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
 */
import { inflateRawSync } from "node:zlib";
import { type ReadingBudget, unpackedWithin } from "./pdf-size.ts";
import { textTokens } from "./text-density.ts";

const LOCAL_HEADER = 0x04034b50;
const LOCAL_HEADER_BYTES = 30;
const DIRECTORY_ENTRY = 0x02014b50;
const DIRECTORY_ENTRY_BYTES = 46;
const DIRECTORY_END = Buffer.from("PK\x05\x06", "latin1");
const DIRECTORY_END_BYTES = 22;
/** Says that the end before it, of a file of more than 4 GiB, is the one that counts. */
const LARGE_LOCATOR = Buffer.from("PK\x06\x07", "latin1");
/** The longest comment after the directory's end. */
const COMMENT_BYTES_MAX = 65_535;
const STORED = 0;
const DEFLATED = 8;

/** Whether these are the first bytes of a ZIP file. */
export function isZip(head: Buffer): boolean {
  return head.length >= 4 && head.readUInt32LE(0) === LOCAL_HEADER;
}

/** Bytes at the end of a file within which a ZIP file has its directory's end. */
export const ZIP_END_BYTES = DIRECTORY_END_BYTES + COMMENT_BYTES_MAX;

/**
 * Whether these last bytes of a file may be the end of a ZIP file. Readers find it by its end: what stands first is free, and
 * can be another format's mark.
 */
export function endsAsZip(tail: Buffer): boolean {
  return tail.includes(DIRECTORY_END);
}

/** Tokens of all that is in the file, unpacked; undefined when it hides them: encrypted, packed in rare ways, damaged. */
export function zipTokens(zip: Buffer, budget: ReadingBudget): number | undefined {
  try {
    return unpackedTokens(zip, budget);
  } catch {
    // Offsets beyond the file, or bytes that are not packed as they say.
    return undefined;
  }
}

function unpackedTokens(zip: Buffer, budget: ReadingBudget): number | undefined {
  const end = zip.lastIndexOf(DIRECTORY_END);
  if (end < 0 || end + DIRECTORY_END_BYTES + COMMENT_BYTES_MAX < zip.length) return undefined;
  // Readers differ in whom they believe: the last end or one before it, and the larger file's own.
  const tail = zip.subarray(Math.max(0, end - DIRECTORY_END_BYTES - COMMENT_BYTES_MAX), end);
  if (tail.includes(DIRECTORY_END) || tail.includes(LARGE_LOCATOR)) return undefined;
  const entries = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  // Or where the directory begins: some by its offset, some by its size.
  if (at + zip.readUInt32LE(end + 12) !== end) return undefined;
  let total = 0;
  for (let i = 0; i < entries; i++) {
    if (budget.streams-- <= 0 || zip.readUInt32LE(at) !== DIRECTORY_ENTRY) return undefined;
    const entry = readEntry(zip, at, budget);
    if (entry === undefined) return undefined;
    total += textTokens(entry, budget);
    at += DIRECTORY_ENTRY_BYTES + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  // Nor do they all go by the number of entries.
  return entries > 0 && at === end ? total : undefined;
}

/** @param at where the directory's entry is. */
function readEntry(zip: Buffer, at: number, budget: ReadingBudget): Buffer | undefined {
  const isEncrypted = (zip.readUInt16LE(at + 8) & 1) === 1;
  const method = zip.readUInt16LE(at + 10);
  const packedBytes = zip.readUInt32LE(at + 20);
  const local = zip.readUInt32LE(at + 42);
  // Some readers go by the entry's own header.
  const isSame = zip.readUInt32LE(local) === LOCAL_HEADER && zip.readUInt16LE(local + 8) === method;
  if (isEncrypted || !isSame) return undefined;
  const start = local + LOCAL_HEADER_BYTES + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  if (start + packedBytes > zip.length) return undefined;
  const packed = zip.subarray(start, start + packedBytes);
  if (method === STORED) return packed;
  if (method !== DEFLATED) return undefined;
  return unpackedWithin(budget, packedBytes, (maxOutputLength) => inflateRawSync(packed, { maxOutputLength }));
}
