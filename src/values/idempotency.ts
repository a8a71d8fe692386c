/**
 * A request that its client may send again under the same `Idempotency-Key`
 * (docs/decisions/idempotency-keeps-no-bodies.md): how it is recognised, and how long it is remembered. No answer is
 * kept, only which request took the key and how that ended.
 */
import { createHash } from "node:crypto";

/**
 * What distinguishes one request of an account from another. Both texts are 64 hex digits; neither shows what it was
 * made of.
 */
export interface IdempotentRequest {
  /** The client's key, hashed. */
  readonly key: string;
  /** Endpoint and body, hashed together with the key, so that equal bodies under two keys look different. */
  readonly fingerprint: string;
}

/** What admission needs to know of such a request. */
export interface Idempotency extends IdempotentRequest {
  readonly streamed: boolean;
  /** How long its end is remembered, from its admission on. */
  readonly keepMs: number;
}

/** What its settlement sends to the store: enough to bring the memory of a charged request back where it was lost. */
export interface KeptRequest extends IdempotentRequest {
  readonly streamed: boolean;
  /** Until when its end is remembered, on the store's clock: never before its hold ends. */
  readonly untilMs: number;
}

/** The state of a request under a key: under way, or charged as a stream or as a whole reply. */
export type KeyState = "running" | "streamed" | "finished";

/**
 * Hashes what identifies a request.
 * @param endpoint names the path without its spelling, so that every way to it is the same.
 */
export function idempotentRequest(key: string, endpoint: string, body: Uint8Array): IdempotentRequest {
  return {
    key: createHash("sha256").update(key).digest("hex"),
    fingerprint: createHash("sha256").update(`${key}\n${endpoint}\n`).update(body).digest("hex"),
  };
}
