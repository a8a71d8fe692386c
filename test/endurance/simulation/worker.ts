/** One thread: it receives seeds and returns results. */
import { parentPort } from "node:worker_threads";
import { type Result, simulate } from "./simulation.ts";

parentPort?.on("message", async (seeds: number[]) => {
  const results: Result[] = [];
  for (const seed of seeds) results.push(await simulate(seed));
  parentPort?.postMessage(results);
});
