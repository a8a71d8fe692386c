/** Ids that look like the vendors' and are always the same for the same request: hashes instead of random values. */

import { createHash } from "node:crypto";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The seed of every id of one reply: a hash of the path, the body and, if ids must differ, a counter. */
export function seedOf(path: string, body: Uint8Array, counter: number): string {
  return createHash("sha256").update(`${path}\n${counter}\n`).update(body).digest("hex");
}

/** `prefix` and `length` base62 characters that depend only on seed, prefix and `ordinal`. */
export function idFrom(seed: string, prefix: string, ordinal = 0, length = 24): string {
  const digest = createHash("sha256").update(`${seed}:${prefix}:${ordinal}`).digest();
  let id = prefix;
  for (let i = 0; i < length; i++) id += BASE62[(digest[i % digest.length] as number) % 62];
  return id;
}

/** `resp_` and 32 hexadecimal digits. */
export function responseId(seed: string): string {
  return `resp_${seed.slice(0, 32)}`;
}

/** Base64 text in place of a vendor's signature or encrypted reasoning. */
export function opaque(seed: string, purpose: string, ordinal: number): string {
  return Buffer.from(`simulated ${purpose} ${idFrom(seed, purpose, ordinal)}`).toString("base64");
}
