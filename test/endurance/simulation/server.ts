/**
 * The modelled store: one history, or one for each shard, under one name. It can be unreachable, be replaced by a
 * replica that lacks the end of the history, restart, and have a clock that jumps. Its books are checked after every
 * operation.
 */
import type { Store } from "../../../src/store/contract.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { Books, type Violation } from "./books.ts";
import { type Done, type Operation, Replica } from "./replica.ts";
import type { Scheduler } from "./scheduler.ts";

export interface ServerParts {
  readonly scheduler: Scheduler;
  readonly shards: number;
  readonly onViolation: (violation: Violation) => void;
  readonly note: (who: string, what: string) => void;
}

interface Shard {
  readonly replica: Replica;
  readonly books: Books;
  /** Increases with each server that takes over, and with each restart. */
  life: number;
}

export class Server {
  readonly #parts: ServerParts;
  readonly shards: readonly Shard[];
  /** Whether calls get no answer, or are refused at once. */
  away: "silent" | "refusing" | undefined;
  /** Increases with each change of servers. Packets that were on their way are lost. */
  term = 0;
  #skewMs = 0;
  /** The maximum by which its clock has been ahead. */
  skewMostMs = 0;
  /** Whether its clock has ever been set back. */
  hasGoneBack = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.shards = Array.from({ length: parts.shards }, () => {
      const replica = new Replica(() => this.nowMs);
      return { replica, books: new Books(replica), life: 1 };
    });
  }

  /** The error of its clock. */
  get skewMs(): number {
    return this.#skewMs;
  }

  set skewMs(ms: number) {
    this.hasGoneBack ||= ms < this.#skewMs;
    this.#skewMs = ms;
    this.skewMostMs = Math.max(this.skewMostMs, ms);
  }

  /** The store's clock. */
  get nowMs(): number {
    return Math.trunc(this.#parts.scheduler.nowMs + this.skewMs);
  }

  /** Executes an operation now. Rejects like the store. */
  async run(operation: Operation, values: readonly unknown[]): Promise<unknown> {
    if (operation === "identity") return this.shards.map(({ life }) => `life-${life}`).join(",");
    if (isOfMark(operation)) return this.#runMark(operation, values);
    if (operation === "findAccount") return this.#findAccount(values[0] as string);
    const tag = tagIn(values[0]);
    const shard = this.#shardOf(tag);
    const answer = await shard.replica.run(operation, values, this.#parts.scheduler.nowMs);
    this.#parts.note("store", `${operation} ${described(values)} -> ${outcomeOf(answer)}`);
    if (tag !== undefined) for (const violation of shard.books.check(tag)) this.#parts.onViolation(violation);
    return answer;
  }

  /** The store without the network, to inspect its data. */
  storeOf(tag: AccountTag | undefined): Store {
    return this.#shardOf(tag).replica.store;
  }

  /**
   * Another server takes over, or the same one restarts: what happened in the last `windowMs` is lost.
   * @returns the lost operations.
   */
  async replace(shardIndex: number, windowMs: number): Promise<readonly Done[]> {
    const shard = this.shards[shardIndex] as Shard;
    const sinceMs = this.#parts.scheduler.nowMs - windowMs;
    const { history } = shard.replica;
    const kept = windowMs <= 0 ? history.length : history.findLastIndex(({ trueMs }) => trueMs < sinceMs) + 1;
    this.term++;
    shard.life++;
    return this.#keep(shard, kept);
  }

  /** Another server takes over with an old copy, without anything that came after it. */
  async restore(shardIndex: number, backup: readonly Done[]): Promise<void> {
    const shard = this.shards[shardIndex] as Shard;
    this.term++;
    shard.life++;
    await shard.replica.become(backup);
    shard.books.reset();
  }

  /** The process with an embedded store has ended. @param cutTo how much of the history survives a power loss. */
  async endProcess(cutTo?: (replica: Replica) => number): Promise<readonly Done[]> {
    const [shard] = this.shards as [Shard];
    // A kill does not change the store's identity, and a power loss does.
    if (cutTo) shard.life++;
    const lost = cutTo ? await this.#keep(shard, cutTo(shard.replica)) : [];
    shard.replica.forgetLive();
    return lost;
  }

  async #keep(shard: Shard, kept: number): Promise<readonly Done[]> {
    const lost = await shard.replica.keep(kept);
    if (lost.length > 0) shard.books.reset();
    return lost;
  }

  /** Each shard has its own epoch mark, like each range of slots in a cluster. */
  async #runMark(operation: Operation, [part, ...values]: readonly unknown[]): Promise<unknown> {
    const { replica } = this.shards[part as number] as Shard;
    return replica.run(operation, [0, ...values], this.#parts.scheduler.nowMs);
  }

  async #findAccount(name: string): Promise<unknown> {
    for (const { replica } of this.shards) {
      const account = await replica.store.findAccount(name);
      if (account) return account;
    }
    return undefined;
  }

  /** The number of the shard that has an account. Codes are on the first shard. */
  partOf(tag: string | undefined): number {
    return tag === undefined ? 0 : Number.parseInt(tag.slice(-1), 36) % this.shards.length;
  }

  #shardOf(tag: string | undefined): Shard {
    return this.shards[this.partOf(tag)] as Shard;
  }
}

function isOfMark(operation: Operation): boolean {
  return operation === "countEpoch" || operation === "stopEpoch" || operation === "renewEpoch";
}

/** The account is the first argument of an operation, or a member of it. Operations on codes have none. */
function tagIn(value: unknown): AccountTag | undefined {
  if (typeof value === "string") return value.startsWith("ACCT") ? (value as AccountTag) : undefined;
  return (value as { tag?: AccountTag } | undefined)?.tag;
}

function described(values: readonly unknown[]): string {
  return values
    .map((value) => {
      const ask = value as { requestId?: string; tag?: string; amount?: bigint; id?: string } | undefined;
      if (typeof ask !== "object" || ask === null) return String(value);
      return [ask.requestId?.slice(-6), ask.tag, ask.id, ask.amount].filter((part) => part !== undefined).join("/");
    })
    .join(" ");
}

function outcomeOf(answer: unknown): string {
  if (typeof answer !== "object" || answer === null) return String(answer);
  const { outcome, cause, balance } = answer as { outcome?: string; cause?: string; balance?: bigint };
  return [outcome ?? "done", cause, balance].filter((part) => part !== undefined).join(" ");
}
