/**
 * The health of Redis: whether it, or a part of a cluster, answers and is fit for use, and which incarnation answers.
 */
import { errorText } from "../../../values/program/error-text.ts";
import { type StepOutcome, StoreError } from "../../contract.ts";
import type { Script, Scripts } from "../scripts.ts";
import { isOfRights } from "./rights.ts";
import type { Runner } from "./runner.ts";

/** Checks Redis repeatedly. A warning is passed on when it begins, and not again while it lasts. */
export class HealthCheck {
  readonly #runner: Runner;
  readonly #writeProbe: Script;
  readonly #fitness: FitnessOptions;
  #warnings: ReadonlySet<string> = new Set();

  constructor(runner: Runner, scripts: Scripts, fitness: FitnessOptions) {
    this.#runner = runner;
    this.#writeProbe = scripts["write-probe"];
    this.#fitness = fitness;
  }

  /** Resolves when it is fit for use. @throws StoreError with the reason. */
  async check(): Promise<void> {
    const found = new Set<string>();
    try {
      await checkHealth(this.#runner, this.#writeProbe, {
        ...this.#fitness,
        warn: (message) => found.add(message),
      });
    } finally {
      for (const message of found) if (!this.#warnings.has(message)) this.#fitness.warn(message);
      this.#warnings = found;
    }
  }
}

async function checkHealth(runner: Runner, writeProbe: Script, fitness: FitnessOptions): Promise<void> {
  const { rights } = runner;
  const { warn } = fitness;
  const answers = await runner.step(async (redis) => {
    try {
      const nodes = redis.primaries();
      return someOf(nodes, await redis.infos());
    } catch (error) {
      // The user may lack the right to INFO itself; the error then also names its other missing rights.
      if (isOfRights(String(error))) await rights?.check(warn);
      throw error;
    }
  });
  for (const { info } of answers) checkFitness(info, fitness);
  const problems = await Promise.all(
    answers.map(({ node, info }) => whyNoWrite(info) ?? whyNoSave(info, () => runOn(runner, node, writeProbe))),
  );
  // A failed part of a cluster affects only its own accounts.
  if (problems[0] !== undefined && !problems.includes(undefined)) throw unfit(problems[0]);
  await runner.step(async () => rights?.check(warn));
}

/** Identifies the servers that answer, and their incarnations. @throws StoreError while that is unknown. */
export async function identityNow(runner: Runner): Promise<string> {
  return identityOf(await runner.step(async (redis) => allOf(await redis.infos())));
}

/** Every primary's answer. If one is missing, its identity is unknown, so this throws. */
function allOf(infos: readonly PromiseSettledResult<string>[]): string[] {
  return infos.map((info) => {
    if (info.status === "rejected") throw info.reason;
    return info.value;
  });
}

/** INFO of a server. */
interface InfoOf {
  readonly node: string;
  readonly info: string;
}

/**
 * The answers received, or the error if there is none. A cluster part that is down affects only its own accounts
 * (docs/failure-model.md row B7).
 * @param nodes the servers that were asked, in the same order.
 */
function someOf(nodes: readonly string[], infos: readonly PromiseSettledResult<string>[]): InfoOf[] {
  const answered = infos.flatMap((info, at) =>
    info.status === "fulfilled" ? [{ node: nodes[at] ?? "", info: info.value }] : [],
  );
  if (answered.length === 0) allOf(infos);
  return answered;
}

/*
 * Whether a Redis is fit to keep money, read from INFO, which each of our ACL users may call, and never from CONFIG
 * (docs/failure-model.md rows B11 and 82).
 */

const MAJOR_MIN = 7;

export interface FitnessOptions {
  readonly warn: (message: string) => void;
  /** Refuse a Redis without an append-only file instead of warning. */
  readonly demandAof: boolean;
}

/**
 * @throws StoreError that names the fault of the Redis that gave this INFO. Its outcome is `refused` when waiting does
 * not help, so that a gateway refuses to start.
 */
export function checkFitness(info: string, options: FitnessOptions): void {
  const facts = parseInfo(info);
  const version = facts.get("redis_version") ?? "unknown";
  if (!(Number.parseInt(version, 10) >= MAJOR_MIN)) throw unfit(`Redis ${version}, 7.0 or later is needed`, "refused");
  if (facts.get("loading") === "1") throw unfit("Redis is loading its data");
  const role = facts.get("role");
  if (role !== "master") throw unfit(`this Redis is a ${role ?? "server of unknown role"}; a primary is needed`);
  const policy = facts.get("maxmemory_policy") ?? "unknown";
  if (policy !== "noeviction") {
    throw unfit(`maxmemory-policy is ${policy}, which loses money; noeviction is needed`, "refused");
  }
  if (facts.get("aof_enabled") === "1") return;
  const aof = "Redis keeps no append-only file: a restart loses charges, which only our journals can restore";
  if (options.demandAof) throw unfit(aof, "refused");
  options.warn(aof);
}

/**
 * Why a Redis accepts no writes at present, according to INFO. Answering is no proof that it would accept a charge
 * (rows B10 and B11).
 */
function whyNoWrite(info: string): string | undefined {
  const facts = parseInfo(info);
  const bytes = (name: string) => Number(facts.get(name) ?? 0);
  const maxmemory = bytes("maxmemory");
  if (maxmemory > 0 && bytes("used_memory") - bytes("mem_not_counted_for_evict") > maxmemory) {
    return `Redis is out of memory (maxmemory: ${maxmemory} bytes) and accepts no writes`;
  }
  // This field exists only when min-replicas-to-write is set.
  if (facts.get("min_slaves_good_slaves") === "0")
    return "Redis has no replica that keeps up (min-replicas-to-write) and accepts no writes";
  if (facts.get("aof_last_write_status") !== "err") return undefined;
  return "Redis cannot write its append-only file (is its disk full?) and accepts no writes";
}

/**
 * The same for a Redis whose last snapshot failed. INFO does not tell whether it accepts writes all the same
 * (`stop-writes-on-bgsave-error`), so a script is sent that could write.
 */
async function whyNoSave(info: string, probe: () => Promise<unknown>): Promise<string | undefined> {
  if (parseInfo(info).get("rdb_last_bgsave_status") !== "err") return undefined;
  try {
    await probe();
    return undefined;
  } catch (error) {
    // Any other failure is found by the next INFO.
    if (!errorText(error).includes("MISCONF")) return undefined;
    return "Redis cannot save its snapshot (is its disk full?) and accepts no writes (stop-writes-on-bgsave-error)";
  }
}

function runOn(runner: Runner, node: string, script: Script): Promise<unknown> {
  return runner.step((redis) => redis.runOn(node, script, []));
}

/**
 * Identifies the servers that answer, and their incarnations: the run id is new after a restart, the replication id
 * after a promotion (invariant 33). Sorted, because the servers may answer in any order.
 * @throws StoreError while one of them is still loading or is not a primary.
 */
function identityOf(infos: readonly string[]): string {
  return infos.map(lifeOf).sort().join(",");
}

function lifeOf(info: string): string {
  const facts = parseInfo(info);
  const life = [facts.get("run_id"), facts.get("master_replid")];
  if (facts.get("role") !== "master" || facts.get("loading") === "1" || life.includes(undefined)) {
    throw unfit("it is unknown which Redis answers");
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
