/**
 * Request ids: a UUIDv7, which is also the idempotency key of hold, charge and ledger line, printed as `req_` and 24
 * base62 characters.
 */
import { base62, type RandomBytes, valueOfBase62 } from "./key.ts";

/** 32 hex characters; the first 12 are the time of issue in milliseconds. */
export type RequestId = string & { readonly __unit: "uuid-v7-hex" };

/** A new id (RFC 9562 section 5.7: 48 bits of time, version 7, variant 10, 74 random bits). */
export function newRequestId(wallMs: number, random: RandomBytes): RequestId {
  const bytes = Buffer.from(random(16));
  bytes.writeUIntBE(Math.trunc(wallMs), 0, 6);
  bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  return bytes.toString("hex") as RequestId;
}

/** The id as clients see it, the same in header, body, log and ledger. */
export function printRequestId(id: RequestId): string {
  return `req_${base62(BigInt(`0x${id}`), 24)}`;
}

/** The id that was printed so; undefined for a text that is none. */
export function readRequestId(text: string): RequestId | undefined {
  if (!/^req_[0-9A-Za-z]{24}$/.test(text)) return undefined;
  const hex = valueOfBase62(text.slice(4)).toString(16).padStart(32, "0");
  return hex.length === 32 ? (hex as RequestId) : undefined;
}

/** When an id was issued, in milliseconds since the epoch. */
export function issuedAtMs(id: RequestId): number {
  return Number.parseInt(id.slice(0, 12), 16);
}
