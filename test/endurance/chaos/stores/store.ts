/** A store in a chaos run, and what all forms on Redis share: reading a server's state, and faults of one server. */
import { globSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { TestRedis } from "../../../rig/redis.ts";

/** From 0 (included) to 1. */
export type Random = () => number;

/** Causes a fault, and resolves when the store has recovered. */
export type Fault = (random: Random) => Promise<void>;

export interface ChaosStore {
  /** The `store:` setting; undefined for the embedded store, which is in the gateway's folder. */
  readonly setting: string | undefined;
  readonly faults: Readonly<Record<string, Fault>>;
  stop(): Promise<void>;
}

/** The settings of a production Redis according to the README: an append-only file, synced every second. */
export const SERVER_ARGS = [
  ...["--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"],
  ...["--repl-diskless-sync-delay", "0", "--repl-timeout", "5"],
];

/** The maximum time until a server or a topology has recovered. */
const WHOLE_MS = 60_000;
const POLL_MS = 20;

/** Waits. The duration of a fault is part of the fault. */
export function lasting(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A whole number of milliseconds. */
export function between(random: Random, leastMs: number, mostMs: number): number {
  return Math.round(leastMs + random() * (mostMs - leastMs));
}

/** Polls until the condition holds; an error counts as false. @throws Error with `what` after the time limit. */
export async function until(what: string, holds: () => Promise<boolean>, limitMs = WHOLE_MS): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline) {
    if (await holds().catch(() => false)) return;
    await lasting(POLL_MS);
  }
  throw new Error(`not within ${limitMs / 1_000} s: ${what}`);
}

/** The replication section of INFO: `role:master`, `master_link_status:up`. */
export async function says(server: TestRedis, word: string): Promise<boolean> {
  return (await server.command("INFO", "replication")).includes(`\r\n${word}\r\n`);
}

/** Runs a command that must succeed. */
export async function order(server: TestRedis, ...words: string[]): Promise<void> {
  const reply = await server.command(...words);
  if (reply.startsWith("-")) throw new Error(`${words.join(" ")}: ${reply}`);
}

/** kill -9, and a restart after up to 1.5 seconds. Acknowledged writes are on the disk or in the system's cache. */
export async function kill(server: TestRedis, random: Random): Promise<void> {
  await server.crash(() => lasting(between(random, 0, 1_500)));
}

/**
 * What a power cut leaves with `everysec`: the append-only file without the last moments, up to a second. (After a kill
 * -9 alone the system still has all of it.)
 */
export async function cutPower(server: TestRedis, random: Random): Promise<void> {
  const synced = appendOnlyFile(server);
  const bytes = statSync(synced).size;
  await lasting(between(random, 200, 900));
  await server.crash(() => {
    if (synced === appendOnlyFile(server) && statSync(synced).size > bytes) truncateSync(synced, bytes);
  });
}

/** The newest increment. A replica that copied its primary has begun another one. */
function appendOnlyFile({ dir }: TestRedis): string {
  const files = globSync(join(dir, "appendonlydir", "*.incr.aof"));
  const numberOf = (file: string): number => Number(/\.(\d+)\.incr\.aof$/.exec(file)?.[1]);
  const newest = files.sort((a, b) => numberOf(a) - numberOf(b)).at(-1);
  if (newest === undefined) throw new Error("the server has no append-only file");
  return newest;
}

/** SIGSTOP: connections stay open, nothing is answered, and requests that clients have sent are executed afterwards. */
export async function freeze(server: TestRedis, ms: number): Promise<void> {
  server.freeze();
  try {
    await lasting(ms);
  } finally {
    server.thaw();
  }
}

/**
 * Cuts the link between a primary and its replica for a moment, in which the primary acknowledges writes that a
 * failover then loses. The replica presents a password that the primary does not accept, so it cannot reconnect until
 * the password is reset.
 */
export async function lag(primary: TestRedis, replica: TestRedis, random: Random): Promise<void> {
  await order(replica, "CONFIG", "SET", "masterauth", "none-such");
  await until("the link is cut", async () => {
    await order(primary, "CLIENT", "KILL", "TYPE", "replica");
    return says(replica, "master_link_status:down");
  });
  await lasting(between(random, 150, 400));
}

/** Whether a replica is linked to its primary, and so has all its data. */
export function follows(replica: TestRedis): Promise<boolean> {
  return says(replica, "master_link_status:up");
}
