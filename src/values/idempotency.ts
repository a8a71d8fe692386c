/**
 * Requests that a client may repeat with the same `Idempotency-Key` (docs/decisions/idempotency-keeps-no-bodies.md):
 * how they are recognized, and how long they are remembered. No answer is kept, only which request took the key and how
 * it ended.
 */
import { createHash } from "node:crypto";

/**
 * What distinguishes one request of an account from another. Both texts are 64 hex digits; neither reveals its input.
 */
export interface IdempotentRequest {
  /** The client's key, hashed. */
  readonly key: string;
  /** Endpoint and body, hashed together with the key, so that equal bodies under two keys look different. */
  readonly fingerprint: string;
}

/** What admission needs to know about such a request. */
export interface Idempotency extends IdempotentRequest {
  readonly streamed: boolean;
  /** How long its end is remembered, counted from its admission. */
  readonly keepMs: number;
}

/** What its settlement sends to the store: enough to restore the memory of a charged request if it was lost. */
export interface KeptRequest extends IdempotentRequest {
  readonly streamed: boolean;
  /** Until when its end is remembered, on the store's clock: never before its hold ends. */
  readonly untilMs: number;
}

/** The state of a request under a key: running, or charged as a stream or as a whole reply. */
export type KeyState = "running" | "streamed" | "finished";

/**
 * Hashes what identifies a request.
 * @param endpoint names the path in a canonical form, so that every spelling of it is the same.
 */
export function idempotentRequest(key: string, endpoint: string, body: Uint8Array): IdempotentRequest {
  return {
    key: createHash("sha256").update(key).digest("hex"),
    fingerprint: createHash("sha256").update(`${key}\n${endpoint}\n`).update(body).digest("hex"),
  };
}
