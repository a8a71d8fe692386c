/**
 * Upper estimate of how much text a ZIP file contains (office documents, sheets and slides are ZIP files). The sender
 * chooses the sizes that the file declares, so the contents are decompressed, within a budget. A file that cannot be
 * read never counts as small. Format: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
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
/** In a file of more than 4 GiB, this says that the directory end before it is the valid one. */
const LARGE_LOCATOR = Buffer.from("PK\x06\x07", "latin1");
/** The longest comment after the end of the directory. */
const COMMENT_BYTES_MAX = 65_535;
const STORED = 0;
const DEFLATED = 8;

/** Whether these are the first bytes of a ZIP file. */
export function isZip(head: Buffer): boolean {
  return head.length >= 4 && head.readUInt32LE(0) === LOCAL_HEADER;
}

/** The directory end of a ZIP file is within this many bytes at the end of the file. */
export const ZIP_END_BYTES = DIRECTORY_END_BYTES + COMMENT_BYTES_MAX;

/**
 * Whether these last bytes may be the end of a ZIP file. ZIP readers start at the end: the file can begin with
 * anything, including the signature of another format.
 */
export function endsAsZip(tail: Buffer): boolean {
  return tail.includes(DIRECTORY_END);
}

/**
 * Tokens of all entries, decompressed; undefined if the file hides them: encrypted, compressed in a rare format,
 * damaged.
 */
export function zipTokens(zip: Buffer, budget: ReadingBudget): number | undefined {
  try {
    return unpackedTokens(zip, budget);
  } catch {
    // Offsets beyond the file, or data that is not compressed as declared.
    return undefined;
  }
}

function unpackedTokens(zip: Buffer, budget: ReadingBudget): number | undefined {
  const end = zip.lastIndexOf(DIRECTORY_END);
  if (end < 0 || end + DIRECTORY_END_BYTES + COMMENT_BYTES_MAX < zip.length) return undefined;
  // ZIP readers disagree on which directory end is valid: the last one, an earlier one, or that of a file over 4 GiB.
  const tail = zip.subarray(Math.max(0, end - DIRECTORY_END_BYTES - COMMENT_BYTES_MAX), end);
  if (tail.includes(DIRECTORY_END) || tail.includes(LARGE_LOCATOR)) return undefined;
  const entries = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  // They also disagree on where the directory begins: some use its offset, some its size.
  if (at + zip.readUInt32LE(end + 12) !== end) return undefined;
  let total = 0;
  for (let i = 0; i < entries; i++) {
    if (budget.streams-- <= 0 || zip.readUInt32LE(at) !== DIRECTORY_ENTRY) return undefined;
    const entry = readEntry(zip, at, budget);
    if (entry === undefined) return undefined;
    total += textTokens(entry, budget);
    at += DIRECTORY_ENTRY_BYTES + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  // Some of them ignore the number of entries.
  return entries > 0 && at === end ? total : undefined;
}

/** @param at offset of the entry in the directory. */
function readEntry(zip: Buffer, at: number, budget: ReadingBudget): Buffer | undefined {
  const isEncrypted = (zip.readUInt16LE(at + 8) & 1) === 1;
  const method = zip.readUInt16LE(at + 10);
  const packedBytes = zip.readUInt32LE(at + 20);
  const local = zip.readUInt32LE(at + 42);
  // Some readers use the entry's local header.
  const isSame = zip.readUInt32LE(local) === LOCAL_HEADER && zip.readUInt16LE(local + 8) === method;
  if (isEncrypted || !isSame) return undefined;
  const start = local + LOCAL_HEADER_BYTES + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  if (start + packedBytes > zip.length) return undefined;
  const packed = zip.subarray(start, start + packedBytes);
  if (method === STORED) return packed;
  if (method !== DEFLATED) return undefined;
  return unpackedWithin(budget, packedBytes, (maxOutputLength) => inflateRawSync(packed, { maxOutputLength }));
}
