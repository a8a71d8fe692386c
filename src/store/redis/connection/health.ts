/** How Redis is: whether it, or a part of a cluster, answers and is fit for use, and which of its lives answers. */
import { checkFitness, type FitnessOptions, identityOf } from "./fitness.ts";
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
