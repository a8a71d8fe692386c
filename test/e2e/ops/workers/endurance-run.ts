/**
 * `npm run reloads`: a gateway of several processes under load, reloads and faults. Prints its figures as one line of
 * JSON and ends with status 1 unless all figures that must be zero are zero.
 */
import process from "node:process";
import { programOptions } from "../../../rig/program-options.ts";
import { ensureSystemPackages } from "../../../rig/system-packages.ts";
import { faultsOf, reloadEndurance } from "./endurance.ts";

const USAGE = `npm run reloads -- [options]
  --reloads N    accepted reloads after which it ends (default 1000)
  --workers N    processes that serve clients (default 3)
  --clients N    clients that ask one thing after another (default 8)
  --seed N       the same seed gives the same plan of faults (default 1)
  --verbose      tells of every fault and every worker
`;

const { values } = programOptions(
  {
    options: {
      reloads: { type: "string", default: "1000" },
      workers: { type: "string", default: "3" },
      clients: { type: "string", default: "8" },
      seed: { type: "string", default: "1" },
      verbose: { type: "boolean", default: false },
    },
  },
  USAGE,
);

function whole(name: "reloads" | "workers" | "clients" | "seed", least: number, most: number): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new TypeError(`--${name}: a whole number from ${least} to ${most} is needed`);
}

ensureSystemPackages();
const undo: (() => Promise<void>)[] = [];
try {
  const figures = await reloadEndurance((one) => undo.push(one), {
    reloads: whole("reloads", 1, 1_000_000),
    workers: whole("workers", 2, 64),
    clients: whole("clients", 1, 1_000),
    seed: whole("seed", 0, 2 ** 31),
    ...(values.verbose ? { log: (what) => process.stderr.write(`${what}\n`) } : {}),
  });
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  const faults = faultsOf(figures);
  if (faults.length > 0) {
    process.stderr.write(`${faults.join("\n")}\n`);
    process.exitCode = 1;
  }
} finally {
  for (const one of undo.reverse()) await one();
}
