/**
 * Who may have a connection to the site now. Visitors need no key, so all that tells them apart is their address.
 *
 * An address takes a place only while it holds fewer than are free. Alone it gets half of all, two get a third each, and
 * whoever is new finds one, however many the others keep busy and however slowly they use them. The same holds for all
 * addresses of an IPv6 network together. The same rule shares out the line in front.
 */

import { addressBucket, networkOf } from "../../wire/address.ts";
import type { DescriptorShares } from "../descriptors.ts";

interface PlaceLimits {
  readonly placesMax: number;
  readonly waitingMax: number;
  readonly waitMs: number;
}

/** Gives a place back; further calls have no effect. */
export type Leave = () => void;

interface PlaceWaiter {
  readonly resolve: (leave: Leave | undefined) => void;
}

export class SitePlaces {
  readonly #limits: PlaceLimits;
  readonly #held = new Map<string, number>();
  /** In the order in which their turns come. */
  readonly #lines = new Map<string, PlaceWaiter[]>();
  #taken = 0;
  #waiting = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** Places taken and visitors waiting, for tests of what is given back. */
  get census(): { readonly taken: number; readonly waiting: number } {
    return { taken: this.#taken, waiting: this.#waiting };
  }

  /**
   * Takes a place, now or within `waitMs`.
   * @param address the client's; those without a trustworthy one are all the same client.
   * @param gone ends the waiting of a client that has left.
   * @returns how to give it back; undefined when there was none in time or the line is full.
   */
  enter(address: string | undefined, gone: AbortSignal): Promise<Leave | undefined> {
    const owner = address === undefined ? "" : addressBucket(address);
    if (gone.aborted) return Promise.resolve(undefined);
    if (this.#mayTake(owner)) return Promise.resolve(this.#take(owner));
    const line = this.#lines.get(owner) ?? [];
    if (line.length >= this.#limits.waitingMax - this.#waiting) return Promise.resolve(undefined);
    const { promise, resolve } = Promise.withResolvers<Leave | undefined>();
    const waiting: PlaceWaiter = { resolve };
    const giveUp = () => {
      this.#leaveLine(owner, waiting);
      resolve(undefined);
    };
    const timer = setTimeout(giveUp, this.#limits.waitMs);
    gone.addEventListener("abort", giveUp);
    line.push(waiting);
    this.#lines.set(owner, line);
    this.#waiting += 1;
    return promise.finally(() => {
      clearTimeout(timer);
      gone.removeEventListener("abort", giveUp);
    });
  }

  #mayTake(owner: string): boolean {
    const free = this.#limits.placesMax - this.#taken;
    return holdersOf(owner).every((holder) => (this.#held.get(holder) ?? 0) < free);
  }

  #take(owner: string): Leave {
    this.#taken += 1;
    for (const holder of holdersOf(owner)) this.#held.set(holder, (this.#held.get(holder) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#taken -= 1;
      for (const holder of holdersOf(owner)) {
        const held = (this.#held.get(holder) ?? 0) - 1;
        if (held > 0) this.#held.set(holder, held);
        else this.#held.delete(holder);
      }
      this.#serveLines();
    };
  }

  /** Gives what is free to those whose turn it is, one for each address in a round. */
  #serveLines(): void {
    for (let served = true; served; ) {
      served = false;
      for (const [owner, line] of [...this.#lines]) {
        if (!this.#mayTake(owner)) continue;
        const [next] = line as [PlaceWaiter];
        this.#leaveLine(owner, next);
        // An owner that had a turn goes to the end of the round.
        if (this.#lines.delete(owner)) this.#lines.set(owner, line);
        next.resolve(this.#take(owner));
        served = true;
      }
    }
  }

  #leaveLine(owner: string, waiting: PlaceWaiter): void {
    const line = this.#lines.get(owner);
    const at = line?.indexOf(waiting) ?? -1;
    if (line === undefined || at === -1) return;
    line.splice(at, 1);
    this.#waiting -= 1;
    if (line.length === 0) this.#lines.delete(owner);
  }
}

/** Under which names a place is counted: the address's own, and its network's. */
function holdersOf(owner: string): readonly string[] {
  const network = networkOf(owner);
  return network === undefined ? [owner] : [owner, network];
}

/*
 * What visitors, who need no key, may cost the site and this process.
 */

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
