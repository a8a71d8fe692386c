/**
 * Memory used by the large bodies of this process, by account, from their first byte until they are released. No
 * account may have more than what would still be free then: a single account gets half of the room, two get a third
 * each, and there is always some left for the next one
 * (docs/decisions/large-bodies-leave-as-much-room-as-they-take.md).
 */
import type { BodyRoom } from "../accept/body.ts";
import { TransientMap } from "../values/collections/transient.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { AccountTag } from "../values/key.ts";

/** Share of the process's memory for bodies. What is parsed and built from a body takes two or three times its size. */
const ROOM_RATIO = 0.25;
/** Minimum room in units of the largest body: with half of it, one account can send one such body. */
const LARGEST_BODIES = 2;

/** @returns the bytes that all large bodies of a process may use together. */
export function bodyRoomBytes(memoryBytes: number, bodyBytesMax: number): number {
  return Math.max(ROOM_RATIO * memoryBytes, LARGEST_BODIES * bodyBytesMax);
}

export class BodyShares {
  readonly #byAccount = new TransientMap<AccountTag, number>();
  readonly #roomBytes: () => number;
  readonly #onRefused: () => void;
  #total = 0;

  constructor(roomBytes: () => number, onRefused: () => void) {
    this.#roomBytes = roomBytes;
    this.#onRefused = onRefused;
  }

  /** Room for one body of an account. The store has confirmed the account before any of it is held. */
  roomFor(tag: AccountTag): BodyRoom {
    let held = 0;
    return {
      hold: (bytes) => {
        const more = bytes - held;
        if (more <= 0) return undefined;
        const own = this.#byAccount.get(tag) ?? 0;
        if (own + more > this.#roomBytes() - this.#total - more) return this.#refused(own - held);
        held = bytes;
        this.#move(tag, own + more, more);
        return undefined;
      },
      free: () => {
        if (held === 0) return;
        this.#move(tag, (this.#byAccount.get(tag) ?? 0) - held, -held);
        held = 0;
      },
    };
  }

  #move(tag: AccountTag, own: number, by: number): void {
    this.#total += by;
    if (own === 0) this.#byAccount.delete(tag);
    else this.#byAccount.set(tag, own);
  }

  /**
   * @param others bytes of the account's other bodies. If it has any, room becomes free when they end, and no other
   *   account is the cause.
   */
  #refused(others: number): Refusal {
    this.#onRefused();
    if (others === 0) return refusal("overloaded", { detail: "There is no room for a body of this size." });
    const detail = `The large bodies of your account's running requests use ${others} bytes, which leaves no room for this one.`;
    return refusal("concurrency", { detail });
  }
}
