/**
 * When each key was last used, from where and by which program: noted in memory with each request, and given to the store now
 * and then, so that no request waits for it. What a crash takes is a minute of it.
 */
import { type Store, StoreAwayError } from "../store/contract.ts";
import type { KeyUse } from "../store/records.ts";
import type { Log } from "../telemetry/log.ts";
import type { AccountTag } from "../values/key.ts";
import { containsKey } from "../values/key-search.ts";
import type { Clock } from "../values/time.ts";

/** How long a use waits for the others. */
const GATHER_MS = 60_000;
/** Keys whose use waits at once; the use of others is not noted before these are given to the store. */
const KEYS_MAX = 10_000;
/** A program's name and version, as the first word of its `user-agent` says it. */
const PROGRAM = /^[\w.@/+-]{1,64}/;
const FIRST_WORD = /^\S*/;

interface Noted {
  readonly tag: AccountTag;
  readonly keyId: string;
  readonly atMs: number;
  readonly address: string | undefined;
  readonly userAgent: string | undefined;
}

interface KeyUsesParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: Pick<Store, "noteKeyUses">;
  /** Whom an address stands for: of IPv6 its network. */
  readonly bucketOf: (address: string) => string;
}

export class KeyUses {
  readonly #parts: KeyUsesParts;
  readonly #waiting = new Map<string, Noted>();
  #cancel: (() => void) | undefined;

  constructor(parts: KeyUsesParts) {
    this.#parts = parts;
  }

  /** Notes an admitted request; the latest of a key counts. */
  note(use: Noted): void {
    if (this.#waiting.size >= KEYS_MAX && !this.#waiting.has(use.keyId)) return;
    this.#waiting.set(use.keyId, use);
    this.#cancel ??= this.#parts.clock.after(GATHER_MS, () => {
      this.#cancel = undefined;
      void this.flush();
    });
  }

  /** Gives what is noted to the store; where the store is away the rest waits for the next time. Never rejects. */
  async flush(): Promise<void> {
    for (const [tag, uses] of Map.groupBy(this.#waiting.values(), (use) => use.tag)) {
      try {
        await this.#parts.store.noteKeyUses(
          tag,
          uses.map((use) => this.#shown(use)),
        );
      } catch (error) {
        if (error instanceof StoreAwayError) return;
        // One account's own trouble keeps no other waiting, and ends no process.
        this.#parts.log.warn({ reason: String(error) }, "the last use of an account's keys was not noted");
      }
      for (const use of uses) if (this.#waiting.get(use.keyId) === use) this.#waiting.delete(use.keyId);
    }
  }

  async close(): Promise<void> {
    this.#cancel?.();
    await this.flush();
  }

  /** No more than is of use. */
  #shown({ keyId, atMs, address, userAgent }: Noted): KeyUse {
    const from = address === undefined ? "" : this.#parts.bucketOf(address);
    return { keyId, atMs, from, by: programOf(userAgent ?? "") };
  }
}

/** Some clients put their key there, and who may look at the uses of a key must not get it: the word is searched before it is cut. */
function programOf(userAgent: string): string {
  const [word = ""] = FIRST_WORD.exec(userAgent) ?? [];
  return containsKey(word) ? "" : (PROGRAM.exec(word)?.[0] ?? "");
}
