/**
 * What visitors, who need no key, may cost the site and this process.
 */
import type { DescriptorShares } from "../descriptors.ts";

export interface SiteLimits {
  /** Requests to the site at once; each has a connection of its own. */
  readonly requestsMax: number;
  /** Upgraded connections at once. */
  readonly upgradesMax: number;
  /** Visitors of each of the two kinds who may wait for one of those to end, and how long. */
  readonly waitingMax: number;
  readonly waitMs: number;
  readonly connectMs: number;
  /** Longest time until the head of the site's answer, the sending of the request included. */
  readonly headMs: number;
  /** The same for the answer to an upgrade, which needs no work of the site. */
  readonly upgradeHeadMs: number;
  /** Longest silence of an answer, or of both sides of an upgraded connection. */
  readonly idleMs: number;
  /** Status line and headers of an answer together. As much as the front takes (deploy/nginx.conf). */
  readonly headBytesMax: number;
  readonly headersMax: number;
}

export const SITE_LIMITS: SiteLimits = Object.freeze({
  requestsMax: 256,
  upgradesMax: 1_024,
  waitingMax: 256,
  waitMs: 10_000,
  connectMs: 5_000,
  headMs: 300_000,
  upgradeHeadMs: 30_000,
  idleMs: 300_000,
  headBytesMax: 16_384,
  headersMax: 200,
});

/** The limits on connections, lowered to what the system's limit on descriptors has room for: half for each kind. */
export function withinSiteShare(limits: SiteLimits, shares: DescriptorShares | undefined): SiteLimits {
  if (shares === undefined) return limits;
  const half = Math.max(1, Math.floor(shares.siteMax / 2));
  return {
    ...limits,
    requestsMax: Math.min(limits.requestsMax, half),
    upgradesMax: Math.min(limits.upgradesMax, half),
  };
}
