/**
 * `npm run sim`: 2,000 seeds, or `--seeds N` of them from `--from S`, or one with `--seed N` and, with `--trace`, all
 * its events. `--within SECONDS` limits a long run, and `--threads N` sets the number of threads. The last line is
 * JSON.
 */
import process from "node:process";
import { programOptions } from "../../rig/program-options.ts";
import { failedSeeds, range, runSeeds } from "./seeds.ts";
import { simulate } from "./simulation.ts";
import { explain, Tally } from "./summary.ts";

const text = { type: "string" } as const;
const { values } = programOptions({
  options: { seed: text, seeds: text, from: text, within: text, threads: text, trace: { type: "boolean" } },
});

/** @throws RangeError on anything except a whole number. */
function whole(value: string | undefined, otherwise: number): number {
  const number = value === undefined ? otherwise : Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError(`${value} is not a whole number`);
  return number;
}

const startMs = performance.now();
let tally = new Tally();
if (values.seed !== undefined) {
  const result = await simulate(whole(values.seed, 0), values.trace ? console.log : undefined);
  tally.add(result);
  console.log(`trace ${result.hash}`);
  if (result.violations.length > 0) console.log(explain(result));
} else {
  tally = await runSeeds({
    seeds: [...failedSeeds(), ...range(whole(values.from, 1), whole(values.seeds, 2_000))],
    threads: Math.max(1, whole(values.threads, 2)),
    withinMs: whole(values.within, 3_600) * 1_000,
    onFailure: (result) => console.log(explain(result)),
  });
}
console.log(JSON.stringify(tally.summary(performance.now() - startMs)));
process.exitCode = tally.failed.length > 0 ? 1 : 0;
