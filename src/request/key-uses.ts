/**
 * When each key was last used, from which address and by which program. Recorded in memory with each request, and
 * written to the store once a minute, so that no request waits for it. A crash loses up to a minute of it.
 */
import { type Store, StoreError, StoreUnreachableError } from "../store/contract.ts";
import type { KeyUse } from "../store/records.ts";
import type { Log } from "../telemetry/log.ts";
import type { AccountTag } from "../values/key.ts";
import { containsKey } from "../values/key-search.ts";
import type { Clock } from "../values/time.ts";

/** Interval at which uses are written. */
const GATHER_MS = 60_000;
/** Keys with a pending use; uses of further keys are dropped until these have been written. */
const KEYS_MAX = 10_000;
/** A program's name and version: the first word of its `user-agent`. */
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
  /** The group to which an address belongs: for IPv6, its network. */
  readonly bucketOf: (address: string) => string;
}

export class KeyUses {
  readonly #parts: KeyUsesParts;
  readonly #waiting = new Map<string, Noted>();
  #cancel: (() => void) | undefined;

  constructor(parts: KeyUsesParts) {
    this.#parts = parts;
  }

  /** Records an admitted request; only the latest use of a key counts. */
  note(use: Noted): void {
    if (this.#waiting.size >= KEYS_MAX && !this.#waiting.has(use.keyId)) return;
    this.#waiting.set(use.keyId, use);
    this.#cancel ??= this.#parts.clock.after(GATHER_MS, () => {
      this.#cancel = undefined;
      void this.flush();
    });
  }

  /**
   * Writes pending uses to the store. If the store is unavailable or waits for its operator, the rest waits for the next
   * time. Never rejects.
   */
  async flush(): Promise<void> {
    for (const [tag, uses] of Map.groupBy(this.#waiting.values(), (use) => use.tag)) {
      try {
        await this.#parts.store.noteKeyUses(
          tag,
          uses.map((use) => this.#shown(use)),
        );
      } catch (error) {
        if (isOfWholeStore(error)) return;
        // An error of one account must not delay the others, and must not end the process.
        this.#parts.log.warn({ reason: String(error) }, "the last use of an account's keys was not noted");
      }
      for (const use of uses) if (this.#waiting.get(use.keyId) === use) this.#waiting.delete(use.keyId);
    }
  }

  async close(): Promise<void> {
    this.#cancel?.();
    await this.flush();
  }

  /** Only the information that is needed. */
  #shown({ keyId, atMs, address, userAgent }: Noted): KeyUse {
    const from = address === undefined ? "" : this.#parts.bucketOf(address);
    return { keyId, atMs, from, by: programOf(userAgent ?? "") };
  }
}

/** Whether no account of the store can be written now; the store's own checks report that. */
function isOfWholeStore(error: unknown): boolean {
  return error instanceof StoreUnreachableError || (error instanceof StoreError && error.kind === "older");
}

/**
 * Some clients send their key in this header, and users who can see the uses of a key must not get it. The word is
 * searched for a key before it is cut.
 */
function programOf(userAgent: string): string {
  const [word = ""] = FIRST_WORD.exec(userAgent) ?? [];
  return containsKey(word) ? "" : (PROGRAM.exec(word)?.[0] ?? "");
}
