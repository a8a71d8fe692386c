/**
 * Decides who may have a connection to the site. Visitors have no key, so only their address distinguishes them.
 *
 * An address gets another slot only while it holds fewer slots than are free. A single address gets half of all; two
 * get a third each. A new address always finds one, however many slots the others use and however slowly. The same
 * rule applies to all addresses of an IPv6 network together, and to the queue.
 */

import { addressBucket, networkOf } from "../../wire/address.ts";
import type { DescriptorShares } from "../descriptors.ts";

interface SlotLimits {
  readonly slotsMax: number;
  readonly waitingMax: number;
  readonly waitMs: number;
}

/** Returns a slot; further calls have no effect. */
export type ReleaseSlot = () => void;

interface SiteSlotWaiter {
  readonly resolve: (release: ReleaseSlot | undefined) => void;
}

export class SiteSlots {
  readonly #limits: SlotLimits;
  readonly #held = new Map<string, number>();
  /** In the order of their turns. */
  readonly #queues = new Map<string, SiteSlotWaiter[]>();
  #taken = 0;
  #waiting = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Places in use and visitors waiting, for tests that check that everything is returned. */
  get census(): { readonly taken: number; readonly waiting: number } {
    return { taken: this.#taken, waiting: this.#waiting };
  }

  /**
   * Takes a slot, now or within `waitMs`.
   * @param address the client's; clients without a trusted address count as one client.
   * @param gone ends the wait when the client disconnects.
   * @returns the function that returns the slot; undefined if none was free in time or the queue is full.
   */
  acquire(address: string | undefined, gone: AbortSignal): Promise<ReleaseSlot | undefined> {
    const owner = address === undefined ? "" : addressBucket(address);
    if (gone.aborted) return Promise.resolve(undefined);
    if (this.#mayTake(owner)) return Promise.resolve(this.#take(owner));
    const queue = this.#queues.get(owner) ?? [];
    if (queue.length >= this.#limits.waitingMax - this.#waiting) return Promise.resolve(undefined);
    const { promise, resolve } = Promise.withResolvers<ReleaseSlot | undefined>();
    const waiting: SiteSlotWaiter = { resolve };
    const giveUp = () => {
      this.#leaveQueue(owner, waiting);
      resolve(undefined);
    };
    const timer = setTimeout(giveUp, this.#limits.waitMs);
    gone.addEventListener("abort", giveUp);
    queue.push(waiting);
    this.#queues.set(owner, queue);
    this.#waiting += 1;
    return promise.finally(() => {
      clearTimeout(timer);
      gone.removeEventListener("abort", giveUp);
    });
  }

  #mayTake(owner: string): boolean {
    const free = this.#limits.slotsMax - this.#taken;
    return holdersOf(owner).every((holder) => (this.#held.get(holder) ?? 0) < free);
  }

  #take(owner: string): ReleaseSlot {
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
      this.#serveQueues();
    };
  }

  /** Hands out free slots in turn, one for each address in a round. */
  #serveQueues(): void {
    for (let served = true; served; ) {
      served = false;
      for (const [owner, queue] of [...this.#queues]) {
        if (!this.#mayTake(owner)) continue;
        const [next] = queue as [SiteSlotWaiter];
        this.#leaveQueue(owner, next);
        // An address that had its turn goes to the end of the round.
        if (this.#queues.delete(owner)) this.#queues.set(owner, queue);
        next.resolve(this.#take(owner));
        served = true;
      }
    }
  }

  #leaveQueue(owner: string, waiting: SiteSlotWaiter): void {
    const queue = this.#queues.get(owner);
    const at = queue?.indexOf(waiting) ?? -1;
    if (queue === undefined || at === -1) return;
    queue.splice(at, 1);
    this.#waiting -= 1;
    if (queue.length === 0) this.#queues.delete(owner);
  }
}

/** The names under which a slot is counted: the address, and its network. */
function holdersOf(owner: string): readonly string[] {
  const network = networkOf(owner);
  return network === undefined ? [owner] : [owner, network];
}

/* Limits on what visitors, who need no key, may cost the site and this process. */

export interface SiteLimits {
  /** Concurrent requests to the site; each has its own connection. */
  readonly requestsMax: number;
  /** Concurrent upgraded connections. */
  readonly upgradesMax: number;
  /** For requests and for upgrades each: visitors that may wait for a slot, and how long. */
  readonly waitingMax: number;
  readonly waitMs: number;
  readonly connectMs: number;
  /** Longest time to the head of the site's answer, including the time to send the request. */
  readonly headMs: number;
  /** The same for the answer to an upgrade, which needs no work of the site. */
  readonly upgradeHeadMs: number;
  /** Idle timeout of an answer, and of both directions of an upgraded connection. */
  readonly idleMs: number;
  /** Status line and headers of an answer together. As much as the front accepts (deploy/nginx.conf). */
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

/** The limits on connections, lowered to what the limit on file descriptors allows: half for each kind. */
export function withinSiteShare(limits: SiteLimits, shares: DescriptorShares | undefined): SiteLimits {
  if (shares === undefined) return limits;
  const half = Math.max(1, Math.floor(shares.siteMax / 2));
  return {
    ...limits,
    requestsMax: Math.min(limits.requestsMax, half),
    upgradesMax: Math.min(limits.upgradesMax, half),
  };
}
