/**
 * What a connection may cost before we know who uses it (docs/failure-model.md rows D5 to D8). The defaults are for a
 * process behind nginx or Envoy.
 */
import type { DescriptorShares } from "./descriptors.ts";

export interface HttpLimits {
  /** Longest time from the first byte of a request to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** Longest time from the first byte of a request to the last of its body. */
  readonly requestTimeoutMs: number;
  /**
   * How often the two limits above are checked: a slow sender is cut at most this much late. Node's own default is 30
   * s.
   */
  readonly checkingIntervalMs: number;
  /** Longer than the front's idle timeout (nginx: 60 s), so that the front closes first and never sees a reset. */
  readonly keepAliveTimeoutMs: number;
  readonly requestsPerSocketMax: number;
  /** Request line and headers together. */
  readonly headerBytesMax: number;
  /** Above it the request is refused. Node never drops headers silently, as older versions did (row 15). */
  readonly headersMax: number;
  readonly targetBytesMax: number;
  readonly connectionsMax: number;
  /** Connections above that which are still refused with an answer instead of a reset. */
  readonly overflowMax: number;
  /**
   * Backlog of the listen call, capped by `net.core.somaxconn`. With Node's default of 511, a front that opens many
   * connections at once is refused at a unix socket (EAGAIN: it answers 502). Over TCP, it waits for a second try.
   */
  readonly backlogMax: number;
  /** How many bytes of a body Node may buffer before we read them. */
  readonly readAheadBytesMax: number;
  /**
   * A client that accepts no bytes for this long has disappeared without closing (row D3). The kernel reports what a slow
   * client accepts only when a third of the send buffer is free: of 4 MB, a client must read 23 KB/s (docs/fronts.md).
   */
  readonly writeStallMs: number;
  /** Requests of one connection that may wait while another one runs (row D6). */
  readonly pipelinedMax: number;
  /** After an answer that left the body unread: how long the rest is drained, so that no reset destroys the answer. */
  readonly lingerMs: number;
  /**
   * How many bytes are drained in that time; then the sender is blocked. Enough for most clients that send the whole
   * body before they read.
   */
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

/** The limits on connections, lowered to what the limit on file descriptors allows. */
export function withinShares(limits: HttpLimits, shares: DescriptorShares | undefined): HttpLimits {
  if (shares === undefined) return limits;
  return {
    ...limits,
    connectionsMax: Math.min(limits.connectionsMax, shares.connectionsMax),
    overflowMax: Math.min(limits.overflowMax, shares.overflowMax),
  };
}
