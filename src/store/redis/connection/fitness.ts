/**
 * Whether a Redis is fit to keep money, read from INFO, which every ACL user of ours may call, never from CONFIG
 * (docs/failure-model.md rows B11 and 82).
 */
import { type StepOutcome, StoreError } from "../../contract.ts";

const MAJOR_MIN = 7;

export interface FitnessOptions {
  readonly warn: (message: string) => void;
  /** Refuse a Redis without an append-only file instead of warning of it. */
  readonly demandAof: boolean;
}

/**
 * @throws StoreError that names what is wrong with the Redis that gave this INFO; its outcome is `refused` where waiting
 * does not help, so that a gateway refuses to start.
 */
export function checkFitness(info: string, options: FitnessOptions): void {
  const facts = parseInfo(info);
  const version = facts.get("redis_version") ?? "unknown";
  if (!(Number.parseInt(version, 10) >= MAJOR_MIN)) throw unfit(`Redis ${version}, 7.0 or later is needed`, "refused");
  if (facts.get("loading") === "1") throw unfit("Redis is loading its data");
  const role = facts.get("role");
  if (role !== "master") throw unfit(`this Redis is a ${role ?? "server of unknown role"}, a primary is needed`);
  const policy = facts.get("maxmemory_policy") ?? "unknown";
  if (policy !== "noeviction") {
    throw unfit(`maxmemory-policy is ${policy}, which loses money; noeviction is needed`, "refused");
  }
  if (facts.get("aof_enabled") === "1") return;
  const aof = "Redis keeps no append-only file: a restart forgets charges, which only our journals can bring back";
  if (options.demandAof) throw unfit(aof, "refused");
  options.warn(aof);
}

/**
 * Which servers, and which of their lives, answer: the run id is new after a restart, the replication id after a
 * promotion (invariant 33). Sorted, since the servers may answer in any order.
 * @throws StoreError while one of them is still loading or is no primary.
 */
export function identityOf(infos: readonly string[]): string {
  return infos.map(lifeOf).sort().join(",");
}

function lifeOf(info: string): string {
  const facts = parseInfo(info);
  const life = [facts.get("run_id"), facts.get("master_replid")];
  if (facts.get("role") !== "master" || facts.get("loading") === "1" || life.includes(undefined)) {
    throw unfit("it cannot be told which Redis answers");
  }
  return life.join(":");
}

function unfit(reason: string, outcome: StepOutcome = "unknown"): StoreError {
  return new StoreError("unavailable", reason, { outcome });
}

function parseInfo(info: string): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  for (const line of info.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) facts.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return facts;
}
