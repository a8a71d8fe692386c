/**
 * What a connection may cost us before we know who uses it (docs/failure-model.md rows D5 to D8). The defaults are for
 * a process behind nginx or Envoy.
 */
import type { DescriptorShares } from "./descriptors.ts";

export interface HttpLimits {
  /** Longest time from the first byte of a request to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** Longest time from the first byte of a request to the last of its body. */
  readonly requestTimeoutMs: number;
  /** How often the two above are enforced: a slow sender is cut at most this much late. Node's own default is 30 s. */
  readonly checkingIntervalMs: number;
  /** Longer than the front's idle time (nginx: 60 s), so that the front closes first and never meets a reset. */
  readonly keepAliveTimeoutMs: number;
  readonly requestsPerSocketMax: number;
  /** Request line and headers together. */
  readonly headerBytesMax: number;
  /**
   * Above it the request is refused; Node is never allowed to show us a truncated view, as older versions did (row 15).
   */
  readonly headersMax: number;
  readonly targetBytesMax: number;
  readonly connectionsMax: number;
  /** Connections above that which still get an answer rather than a reset. */
  readonly overflowMax: number;
  /**
   * Connections that the system may keep until they are accepted; no more than `net.core.somaxconn`. With Node's own 511 a front that
   * opens many at once is refused at a unix socket (EAGAIN: its 502), and waits for a second try at an address.
   */
  readonly backlogMax: number;
  /** How much of a body Node may read ahead of us. */
  readonly readAheadBytesMax: number;
  /** A client that takes nothing for so long has vanished without a word (row D3); a slow one takes something. */
  readonly writeStallMs: number;
  /** Requests of one connection that may wait after a running one (row D6). */
  readonly pipelinedMax: number;
  /** After an answer that left the body unread: how long the rest is drained, so that no reset destroys the answer. */
  readonly lingerMs: number;
  /** How much of it is drained in that time; then its sender waits. Most clients that send all before they read pass. */
  readonly lingerBytesMax: number;
}

export const HTTP_LIMITS: HttpLimits = Object.freeze({
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  checkingIntervalMs: 1_000,
  keepAliveTimeoutMs: 65_000,
  requestsPerSocketMax: 10_000,
  headerBytesMax: 16_384,
  headersMax: 100,
  targetBytesMax: 8_192,
  connectionsMax: 10_000,
  overflowMax: 256,
  backlogMax: 4_096,
  readAheadBytesMax: 65_536,
  writeStallMs: 60_000,
  pipelinedMax: 16,
  lingerMs: 1_000,
  lingerBytesMax: 4_194_304,
});

/** The limits on connections, lowered to what the system's limit on descriptors has room for. */
export function withinShares(limits: HttpLimits, shares: DescriptorShares | undefined): HttpLimits {
  if (shares === undefined) return limits;
  return {
    ...limits,
    connectionsMax: Math.min(limits.connectionsMax, shares.connectionsMax),
    overflowMax: Math.min(limits.overflowMax, shares.overflowMax),
  };
}
