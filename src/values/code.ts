/**
 * Redemption codes of time cards: 16 random symbols and a check symbol, printed `XXXX-XXXX-XXXX-XXXX-C`.
 *
 * The alphabet is Crockford's base 32: digits and capital letters without I, L, O and U. No two of its symbols look
 * alike, so the four missing letters can be read as the symbols that they resemble. 16 symbols carry 80 random bits.
 *
 * The check symbol is the weighted sum of the others in GF(32), with a different weight for each position. It detects
 * one wrong symbol, and any two swapped symbols, without asking the store. Like the checksum of a key, it is public and
 * proves nothing.
 */
import { createHash } from "node:crypto";
import { base62, derivedBase62, type RandomBytes, randomBase62 } from "./key.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const SYMBOLS = 16;
/** What people read and type for symbols that are not in the alphabet. */
const LOOK_ALIKES: Readonly<Record<string, string>> = { O: "0", I: "1", L: "1", U: "V" };
/** A code with a blank after every symbol is shorter; longer texts are rejected at once. */
const TYPED_CHARS_MAX = 64;
/** Blanks and dashes of every kind, and invisible marks that copying a text may add. */
const FILLERS = /[\s\p{Pd}\p{Cf}_]/gu;

/** SHA-256 of a code's 17 symbols, in hex. Nothing else of a code is stored. */
export type CodeHash = string & { readonly __unit: "code-hash" };

/** Value of each symbol, 0 to 31. */
const VALUES: ReadonlyMap<string, number> = new Map([...ALPHABET].map((symbol, value) => [symbol, value]));

/** x times the generator of GF(32), modulo the primitive polynomial x^5 + x^2 + 1. */
function timesGenerator(x: number): number {
  const doubled = x << 1;
  return doubled & 32 ? doubled ^ 0b100101 : doubled;
}

/**
 * Horner's rule: symbol i of 1 to 16 has the weight g^(17 - i), the check symbol 1. The weights differ because g has
 * order 31, so neither a change of one symbol nor a swap of two leaves the sum unchanged.
 */
function checkSymbol(symbols: string): string {
  let sum = 0;
  for (const symbol of symbols) sum = timesGenerator(sum) ^ (VALUES.get(symbol) as number);
  return ALPHABET[timesGenerator(sum)] as string;
}

function hashOf(symbols: string): CodeHash {
  return createHash("sha256").update(symbols).digest("hex") as CodeHash;
}

/**
 * A new code. The text is shown once and never stored.
 * @param nowMs the time of creation; ids of codes sort by it.
 */
export function newCode(nowMs: number, random: RandomBytes): { text: string; hash: CodeHash; id: string } {
  // 256 is a multiple of 32, so the low five bits of a byte are without bias.
  const symbols = [...random(SYMBOLS)].map((byte) => ALPHABET[byte & 31] as string).join("");
  const whole = symbols + checkSymbol(symbols);
  const text = (whole.match(/.{1,4}/g) as string[]).join("-");
  return { text, hash: hashOf(whole), id: `code_${base62(BigInt(nowMs), 8)}${randomBase62(8, random)}` };
}

/** The id of a code in a batch created with the caller's idempotency id: the same for the same index. */
export function codeIdIn(idempotencyId: string, index: number): string {
  return `code_${derivedBase62(16, "codes", idempotencyId, String(index))}`;
}

/** The id of a batch of codes; always the same for the caller's idempotency id. */
export function newBatchId(nowMs: number, random: RandomBytes, idempotencyId: string | undefined): string {
  if (idempotencyId !== undefined) return `batch_${derivedBase62(16, "batch", idempotencyId)}`;
  return `batch_${base62(BigInt(nowMs), 8)}${randomBase62(8, random)}`;
}

/** The id of a gifted card; always the same for the caller's id within an account. */
export function giftId(account: string, id: string | undefined, random: RandomBytes): string {
  return `gift_${id === undefined ? randomBase62(16, random) : derivedBase62(16, "gift", account, id)}`;
}

/**
 * Reads a code as typed by a person: either case, blanks and dashes anywhere, look-alikes, and full-width characters, as
 * a Chinese or Japanese keyboard types them.
 * @returns `"typo"` if it has a code's form but a wrong check symbol; undefined if it does not have the form of a code.
 */
export function readCode(typed: string): CodeHash | "typo" | undefined {
  if (typed.length > TYPED_CHARS_MAX) return undefined;
  const plain = typed.normalize("NFKC").replace(FILLERS, "").toUpperCase();
  const whole = [...plain].map((symbol) => LOOK_ALIKES[symbol] ?? symbol).join("");
  if (whole.length !== SYMBOLS + 1 || ![...whole].every((symbol) => VALUES.has(symbol))) return undefined;
  return checkSymbol(whole.slice(0, SYMBOLS)) === whole[SYMBOLS] ? hashOf(whole) : "typo";
}
