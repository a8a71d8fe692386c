/** Runs many seeds on several threads. Seeds that once failed are in `failed-seeds.txt`. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { Result } from "./simulation.ts";
import { Tally } from "./summary.ts";

const WORKER = new URL("worker.ts", import.meta.url);
/** The number of seeds that a thread gets at a time. */
const BATCH = 5;

export interface RunOptions {
  readonly seeds: Iterable<number>;
  readonly threads: number;
  /** No new seed begins after this time. */
  readonly withinMs: number;
  readonly onFailure?: (result: Result) => void;
}

/** Runs all seeds, until the time is over. */
export async function runSeeds({ seeds, threads, withinMs, onFailure }: RunOptions): Promise<Tally> {
  const tally = new Tally();
  const queue = seeds[Symbol.iterator]();
  const untilMs = performance.now() + withinMs;
  const next = (): number[] => {
    const batch: number[] = [];
    while (batch.length < BATCH && performance.now() < untilMs) {
      const { value, done } = queue.next();
      if (done) break;
      batch.push(value);
    }
    return batch;
  };
  const one = async (): Promise<void> => {
    const worker = new Worker(WORKER);
    for (let batch = next(); batch.length > 0; batch = next()) {
      worker.postMessage(batch);
      const [results] = (await once(worker, "message")) as [Result[]];
      for (const result of results) {
        tally.add(result);
        if (result.violations.length > 0) onFailure?.(result);
      }
    }
    await worker.terminate();
  };
  await Promise.all(Array.from({ length: threads }, one));
  return tally;
}

export function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from + index);
}

/** Seeds that have failed once. Each line begins with one or several of them, followed by what they found. */
export function failedSeeds(): number[] {
  return numbersIn("failed-seeds.txt");
}

function numbersIn(file: string): number[] {
  const text = readFileSync(new URL(file, import.meta.url), "utf8");
  return [...text.matchAll(/^\d+(?: \d+)*\b/gm)].flatMap(([numbers]) => numbers.split(" ").map(Number));
}
