/** How Redis is: whether it, or a part of a cluster, answers and is fit for use, and which of its lives answers. */
import { type StepOutcome, StoreError } from "../../contract.ts";
import { isOfRights } from "./rights.ts";
import type { Runner } from "./runner.ts";

/** Asks how Redis is, again and again, and passes a warning on when it begins and not each time that it still holds. */
export class HealthCheck {
  readonly #runner: Runner;
  readonly #fitness: FitnessOptions;
  #warnings: ReadonlySet<string> = new Set();

  constructor(runner: Runner, fitness: FitnessOptions) {
    this.#runner = runner;
    this.#fitness = fitness;
  }

  /** Resolves when it is fit for use. @throws StoreError with the reason. */
  async check(): Promise<void> {
    const found = new Set<string>();
    try {
      await checkHealth(this.#runner, { ...this.#fitness, warn: (message) => found.add(message) });
    } finally {
      for (const message of found) if (!this.#warnings.has(message)) this.#fitness.warn(message);
      this.#warnings = found;
    }
  }
}

async function checkHealth(runner: Runner, fitness: FitnessOptions): Promise<void> {
  const { rights } = runner;
  const { warn } = fitness;
  const infos = await runner.step(async (redis) => {
    try {
      return someOf(await redis.infos());
    } catch (error) {
      // INFO itself may be what the user may not do; what else it may not is said with it.
      if (isOfRights(String(error))) await rights?.check(warn);
      throw error;
    }
  });
  for (const info of infos) checkFitness(info, fitness);
  // One part of a cluster takes its own accounts with it and no others.
  const problems = infos.map(whyNoWrite);
  if (problems[0] !== undefined && !problems.includes(undefined)) throw unfit(problems[0]);
  await runner.step(async () => rights?.check(warn));
}

/** Which servers answer, and which of their lives. @throws StoreError while that is unknown. */
export async function identityNow(runner: Runner): Promise<string> {
  return identityOf(await runner.step(async (redis) => allOf(await redis.infos())));
}

/** Every primary's answer; the loss of one leaves it open what it knows. */
function allOf(infos: readonly PromiseSettledResult<string>[]): string[] {
  return infos.map((info) => {
    if (info.status === "rejected") throw info.reason;
    return info.value;
  });
}

/**
 * What answered. A part of a cluster that is away takes its own accounts with it and no others (docs/failure-model.md
 * row B7).
 */
function someOf(infos: readonly PromiseSettledResult<string>[]): string[] {
  const answered = infos.filter((info) => info.status === "fulfilled").map((info) => info.value);
  return answered.length > 0 ? answered : allOf(infos);
}

/*
 * Whether a Redis is fit to keep money, read from INFO, which every ACL user of ours may call, never from CONFIG
 * (docs/failure-model.md rows B11 and 82).
 */

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

/** Why a Redis takes no write at present, as far as INFO tells: to ask is no proof that a charge would be taken (rows B10 and B11). */
function whyNoWrite(info: string): string | undefined {
  const facts = parseInfo(info);
  const bytes = (name: string) => Number(facts.get(name) ?? 0);
  const maxmemory = bytes("maxmemory");
  if (maxmemory > 0 && bytes("used_memory") - bytes("mem_not_counted_for_evict") > maxmemory) {
    return `Redis is out of memory (maxmemory: ${maxmemory} bytes) and takes no write`;
  }
  // It is there only where min-replicas-to-write asks for some.
  if (facts.get("min_slaves_good_slaves") === "0")
    return "Redis has no replica that keeps up (min-replicas-to-write) and takes no write";
  if (facts.get("aof_last_write_status") !== "err") return undefined;
  return "Redis cannot write its append-only file, as where its disk is full, and takes no write";
}

/**
 * Which servers, and which of their lives, answer: the run id is new after a restart, the replication id after a
 * promotion (invariant 33). Sorted, since the servers may answer in any order.
 * @throws StoreError while one of them is still loading or is no primary.
 */
function identityOf(infos: readonly string[]): string {
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
