/** A store under chaos, and what every form of it on Redis shares: what servers say of themselves, and faults of one. */
import { globSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { TestRedis } from "../../../rig/redis.ts";

/** From 0 (included) to 1. */
export type Random = () => number;

/** Breaks something, and resolves when it is whole again. */
export type Fault = (random: Random) => Promise<void>;

export interface ChaosStore {
  /** The `store:` setting; undefined: embedded, in the gateway's folder. */
  readonly setting: string | undefined;
  readonly faults: Readonly<Record<string, Fault>>;
  stop(): Promise<void>;
}

/** What a production Redis of an operator who follows the README has: an append-only file, synced every second. */
export const SERVER_ARGS = [
  ...["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"],
  ...["--repl-diskless-sync-delay", "0", "--repl-timeout", "5"],
];

/** The longest that a server or a topology may take to be whole again. */
const WHOLE_MS = 60_000;
const POLL_MS = 20;

/** How long a fault lasts is part of the fault. */
export function lasting(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A whole number of milliseconds. */
export function between(random: Random, leastMs: number, mostMs: number): number {
  return Math.round(leastMs + random() * (mostMs - leastMs));
}

/** Asks until it holds; a question that fails does not hold. @throws Error with `what` after the time limit. */
export async function until(what: string, holds: () => Promise<boolean>, limitMs = WHOLE_MS): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline) {
    if (await holds().catch(() => false)) return;
    await lasting(POLL_MS);
  }
  throw new Error(`not within ${limitMs / 1_000} s: ${what}`);
}

/** What INFO says of replication: `role:master`, `master_link_status:up`. */
export async function says(server: TestRedis, word: string): Promise<boolean> {
  return (await server.command("INFO", "replication")).includes(`\r\n${word}\r\n`);
}

/** A command that must succeed. */
export async function order(server: TestRedis, ...words: string[]): Promise<void> {
  const reply = await server.command(...words);
  if (reply.startsWith("-")) throw new Error(`${words.join(" ")}: ${reply}`);
}

/** kill -9, and back after up to a second and a half; what was acknowledged is on the disk or in the system's cache. */
export async function kill(server: TestRedis, random: Random): Promise<void> {
  await server.crash(() => lasting(between(random, 0, 1_500)));
}

/**
 * What a power cut leaves under `everysec`: the append-only file without what came in the last moments, up to a second.
 * (After a kill -9 alone the system still has it all.)
 */
export async function cutPower(server: TestRedis, random: Random): Promise<void> {
  const synced = appendOnlyFile(server);
  const bytes = statSync(synced).size;
  await lasting(between(random, 200, 900));
  await server.crash(() => {
    if (synced === appendOnlyFile(server) && statSync(synced).size > bytes) truncateSync(synced, bytes);
  });
}

/** The newest increment; a replica that copied its primary has begun another one. */
function appendOnlyFile({ dir }: TestRedis): string {
  const files = globSync(join(dir, "appendonlydir", "*.incr.aof"));
  const numberOf = (file: string): number => Number(/\.(\d+)\.incr\.aof$/.exec(file)?.[1]);
  const newest = files.sort((a, b) => numberOf(a) - numberOf(b)).at(-1);
  if (newest === undefined) throw new Error("the server has no append-only file");
  return newest;
}

/** SIGSTOP: connections stay, nothing is answered, what clients sent is done afterwards. */
export async function freeze(server: TestRedis, ms: number): Promise<void> {
  server.freeze();
  try {
    await lasting(ms);
  } finally {
    server.thaw();
  }
}

/**
 * Cuts the link between a primary and its replica for a moment, in which the primary acknowledges what a failover then
 * loses. The replica presents a password that its primary does not know, so it cannot come back before that is taken back.
 */
export async function lag(primary: TestRedis, replica: TestRedis, random: Random): Promise<void> {
  await order(replica, "CONFIG", "SET", "masterauth", "none-such");
  await until("the link is cut", async () => {
    await order(primary, "CLIENT", "KILL", "TYPE", "replica");
    return says(replica, "master_link_status:down");
  });
  await lasting(between(random, 150, 400));
}

/** Whether a replica has a link to its primary, hence all that it has. */
export function follows(replica: TestRedis): Promise<boolean> {
  return says(replica, "master_link_status:up");
}
