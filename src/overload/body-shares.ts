/**
 * What the large bodies of this process take up, by account, from their first byte until they are let go of. No account may have
 * more than what would then still be free: one alone gets half of the room, two a third each, and there is always some left for the
 * next one (docs/decisions/large-bodies-leave-as-much-room-as-they-take.md).
 */
import type { BodyRoom } from "../accept/body.ts";
import { TransientMap } from "../values/collections/transient.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { AccountTag } from "../values/key.ts";

/** Share of the process's memory that is room for bodies: what is read from one and made of it takes two or three times as much. */
const ROOM_RATIO = 0.25;
/** Times the largest body that there is room for in any case: half of it for one account is one body. */
const LARGEST_BODIES = 2;

/** @returns bytes that all large bodies of a process may take up together. */
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

  /** Room for one body of an account, which the store has vouched for before any of it is held. */
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

  /** @param others bytes of the account's other bodies: where it has any, their end makes room, and nobody else is to blame. */
  #refused(others: number): Refusal {
    this.#onRefused();
    if (others === 0) return refusal("overloaded", { detail: "There is no room for a body of this size." });
    const detail = `The large bodies of your account that are under way have ${others} bytes, which leaves it no room for this one.`;
    return refusal("concurrency", { detail });
  }
}
