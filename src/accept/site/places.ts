/**
 * Who may have a connection to the site now. Visitors need no key, so all that tells them apart is their address.
 *
 * An address takes a place only while it holds fewer than are free. Alone it gets half of all, two get a third each, and
 * whoever is new finds one, however many the others keep busy and however slowly they use them. The same holds for all
 * addresses of an IPv6 network together. The same rule shares out the line in front.
 */
import { addressBucket, networkOf } from "../../values/address-bucket.ts";

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
