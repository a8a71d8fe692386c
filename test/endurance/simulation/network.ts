/**
 * The network between a gateway and the store: packets take time, get lost, are duplicated or late, and nothing passes
 * while the store is unreachable. A call behaves like that of the Redis client
 * (`src/store/redis/connection/runner.ts`): it is tried twice within half a second, then its outcome is unknown.
 */
import { type Store, StoreError } from "../../../src/store/contract.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { Chance } from "./chance.ts";
import { never, type Process } from "./process.ts";
import type { Operation } from "./replica.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Server } from "./server.ts";

const TRY_MS = 400;
const PAUSE_MS = 10;
const TOTAL_MS = 480;

/** Probabilities for a packet. All may change during the run. */
export interface Weather {
  requestLost: number;
  replyLost: number;
  twice: number;
  late: number;
  /** The maximum delay of a late packet, milliseconds. */
  lateMs: number;
}

export const FINE: Readonly<Weather> = { requestLost: 0, replyLost: 0, twice: 0, late: 0, lateMs: 0 };

export interface NetworkParts {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly server: Server;
  readonly weather: Weather;
  readonly count: (fault: string) => void;
}

type Call = readonly [operation: Operation, values: readonly unknown[]];

/** The store as a process reaches it over the network. */
export function remoteStore(process: Process, parts: NetworkParts): Store {
  return storeOf(parts.server, (operation, values) => callTwice(process, [operation, values], parts));
}

/** The store inside the process. */
export function localStore(process: Process, server: Server): Store {
  return storeOf(server, (operation, values) => {
    if (!process.touch()) return never();
    return server.run(operation, values);
  });
}

/** What a client of the store knows without a call is answered at once. */
function storeOf(server: Server, call: (operation: Operation, values: readonly unknown[]) => Promise<unknown>): Store {
  const epochPartOf = (tag: AccountTag): number => server.partOf(tag);
  const known = new Map<PropertyKey, unknown>([
    ["epochParts", server.shards.length],
    ["epochPartOf", epochPartOf],
    ["shardOf", (tag: AccountTag) => `shard-${epochPartOf(tag)}`],
  ]);
  return new Proxy({} as Store, {
    get(_, name) {
      // The store must not look like a promise.
      if (name === "then" || typeof name === "symbol") return undefined;
      if (!known.has(name)) known.set(name, (...values: unknown[]) => call(name as Operation, values));
      return known.get(name);
    },
  });
}

async function callTwice(process: Process, call: Call, parts: NetworkParts): Promise<unknown> {
  if (!process.touch()) return never();
  const startMs = parts.scheduler.nowMs;
  const first = await callOnce(process, call, TRY_MS, parts);
  if (first.answered) return first.take();
  await process.sleep(PAUSE_MS);
  const leftMs = TOTAL_MS - (parts.scheduler.nowMs - startMs);
  const second = leftMs > 0 ? await callOnce(process, call, leftMs, parts) : SILENCE;
  if (second.answered) return second.take();
  throw new StoreError("unavailable", "the store did not answer");
}

interface Outcome {
  readonly answered: boolean;
  readonly take: () => unknown;
}

const SILENCE: Outcome = { answered: false, take: () => undefined };

function callOnce(process: Process, call: Call, withinMs: number, parts: NetworkParts): Promise<Outcome> {
  const { server, weather, chance, count } = parts;
  return new Promise((resolve) => {
    if (server.away === "refusing") {
      process.after(0.2, () => resolve(SILENCE));
      return;
    }
    const cancel = process.after(withinMs, () => resolve(SILENCE));
    if (chance.is(weather.requestLost)) return count("request_lost");
    deliver(call, parts, (outcome) => {
      if (chance.is(weather.replyLost)) return count("reply_lost");
      parts.scheduler.after(delayMs(parts), () =>
        process.receive(() => {
          cancel();
          resolve(outcome);
        }),
      );
    });
    if (!chance.is(weather.twice)) return;
    count("request_twice");
    deliver(call, parts, () => {});
  });
}

/** A packet that is on its way when another server takes over is lost. */
function deliver([operation, values]: Call, parts: NetworkParts, reply: (outcome: Outcome) => void): void {
  const { server, scheduler } = parts;
  const { term } = server;
  scheduler.after(delayMs(parts), () => {
    if (server.away !== undefined || server.term !== term) return;
    server.run(operation, values).then(
      (value) => reply({ answered: true, take: () => value }),
      (error: unknown) =>
        reply({
          answered: true,
          take: () => {
            throw error;
          },
        }),
    );
  });
}

function delayMs({ weather, chance, count }: NetworkParts): number {
  if (!chance.is(weather.late)) return chance.skewed(0.1, 3);
  count("packet_late");
  return chance.skewed(3, weather.lateMs);
}
