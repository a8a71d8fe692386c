/**
 * API keys: `sk-` + 10 base62 characters of the account's tag + 32 of secret + 6 of checksum. The tag gives the store's
 * slot without a lookup. The checksum keeps typos and noise from reaching the store, and proves nothing.
 */
import { hash } from "node:crypto";
import { crc32 } from "node:zlib";

/** The digits, in the order of their values. */
export const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const KEY_FORM = /^sk-[0-9A-Za-z]{48}$/;

export type AccountTag = string & { readonly __unit: "account-tag" };
export type KeyHash = string & { readonly __unit: "sha256-hex" };

/** Returns `count` random bytes; node:crypto's `randomBytes` in production. */
export type RandomBytes = (count: number) => Uint8Array;

/** A key with the correct form and checksum; only the store knows whether it exists. */
export interface WellFormedKey {
  readonly tag: AccountTag;
  readonly hash: KeyHash;
}

/** Eight characters of base62: as many as a number holds exactly, so that few steps need a bigint. */
const CHUNK_CHARS = 8;
const CHUNK = 62n ** BigInt(CHUNK_CHARS);

/** A number in base62, `length` characters, zero-padded on the left. */
export function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; rest > 0n; ) {
    let part = Number(rest % CHUNK);
    rest /= CHUNK;
    for (let i = 0; i < CHUNK_CHARS && (rest > 0n || part > 0); i++) {
      text = BASE62[part % 62] + text;
      part = Math.floor(part / 62);
    }
  }
  return text.padStart(length, "0");
}

/** The inverse of `base62`. @param text only base62 characters. */
export function valueOfBase62(text: string): bigint {
  return [...text].reduce((sum, digit) => sum * 62n + BigInt(BASE62.indexOf(digit)), 0n);
}

const POOL_BYTES = 4_096;

/** The same random source, read in larger blocks. No byte is used twice. */
export function pooled(random: RandomBytes): RandomBytes {
  let pool = new Uint8Array(0);
  let used = 0;
  return (count) => {
    if (count > POOL_BYTES) return random(count);
    if (used + count > pool.length) {
      pool = Uint8Array.from(random(POOL_BYTES));
      used = 0;
    }
    used += count;
    return pool.subarray(used - count, used);
  };
}

/** `length` random base62 characters without bias: bytes of 248 and above are discarded. */
export function randomBase62(length: number, random: RandomBytes): string {
  let text = "";
  while (text.length < length) {
    for (const byte of random(length * 2)) {
      if (byte < 248 && text.length < length) text += BASE62[byte % 62];
    }
  }
  return text;
}

const CHECKSUM_CHARS = 6;

/** `base62` for a number that needs no bigint, because each request checks one. */
function checksum(first45: string): string {
  let text = "";
  for (let rest = crc32(first45); text.length < CHECKSUM_CHARS; rest = Math.floor(rest / 62))
    text = BASE62[rest % 62] + text;
  return text;
}

/**
 * `length` base62 characters derived from the texts: always the same for the same texts, and different for others. For
 * ids that a repeated request must find again.
 */
export function derivedBase62(length: number, ...texts: readonly string[]): string {
  const digest = hash("sha256", JSON.stringify(texts), "hex");
  return base62(BigInt(`0x${digest}`) % 62n ** BigInt(length), length);
}

/** A new account's tag. */
export function newAccountTag(random: RandomBytes): AccountTag {
  return randomBase62(10, random) as AccountTag;
}

/**
 * A new key for an account. The text is shown once and never stored.
 * @param idempotencyId the caller's id for its creation: the key's id is derived from it, its text is not.
 */
export function newKey(
  tag: AccountTag,
  random: RandomBytes,
  idempotencyId?: string,
): { text: string; hash: KeyHash; id: string } {
  const first45 = `sk-${tag}${randomBase62(32, random)}`;
  const text = first45 + checksum(first45);
  const tail = idempotencyId === undefined ? randomBase62(8, random) : derivedBase62(8, "key", tag, idempotencyId);
  return { text, hash: hashKey(text), id: `key_${tag}${tail}` };
}

/** The stored form of a key or a code. */
export function hashKey(text: string): KeyHash {
  return hash("sha256", text, "hex") as KeyHash;
}

/**
 * Reads a key as a client wrote it. No trimming, no case folding.
 * @returns undefined if it does not have the form of a key; `"noise"` if only the checksum is wrong.
 */
export function readKey(text: string): WellFormedKey | "noise" | undefined {
  if (!KEY_FORM.test(text)) return undefined;
  if (checksum(text.slice(0, 45)) !== text.slice(45)) return "noise";
  return { tag: text.slice(3, 13) as AccountTag, hash: hashKey(text) };
}

/** The account tag in a key id (`key_<TAG><8>`) or account id (`acct_<TAG>`), or undefined. */
export function tagOfId(id: string): AccountTag | undefined {
  const match = /^(?:key_([0-9A-Za-z]{10})[0-9A-Za-z]{8}|acct_([0-9A-Za-z]{10}))$/.exec(id);
  return (match?.[1] ?? match?.[2]) as AccountTag | undefined;
}
