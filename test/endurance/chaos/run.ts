/**
 * `npm run chaos`: real gateways and real Redis servers under kills, freezes and failovers, on every form of the store.
 * Prints one JSON line per form, and exits with status 1 if anything was lost, doubled, invented or left over.
 */
import process from "node:process";
import { programOptions } from "../../rig/program-options.ts";
import { ensureSystemPackages } from "../../rig/system-packages.ts";
import { ALL_FORMS, type Form, soak } from "./soak.ts";

const USAGE = `npm run chaos -- [options]
  --store FORM     embedded, single, sentinel, cluster or all (default)
  --requests N     requests answered to their last byte, over all forms together (default 56000)
  --faults N       faults of each form (default 32)
  --seconds N      the longest that clients ask on one form (default 600)
  --clients N      clients of each form (default 12)
  --seed N         the same seed gives the same plan of faults (default 1)
  --quick          does not wait for the end of holds that killed gateways left
  --verbose        tells of every fault as it begins
`;

const { values } = programOptions(
  {
    options: {
      store: { type: "string", default: "all" },
      requests: { type: "string", default: "56000" },
      faults: { type: "string", default: "32" },
      seconds: { type: "string", default: "600" },
      clients: { type: "string", default: "12" },
      seed: { type: "string", default: "1" },
      quick: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
    },
  },
  USAGE,
);

function whole(name: "requests" | "faults" | "seconds" | "clients" | "seed", most: number): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= 0 && number <= most) return number;
  throw new TypeError(`--${name}: a whole number from 0 to ${most} is needed`);
}

function formsOf(text: string): readonly Form[] {
  if (text === "all") return ALL_FORMS;
  const form = ALL_FORMS.find((known) => known === text);
  if (form) return [form];
  throw new TypeError(`--store: ${text} is not one of ${ALL_FORMS.join(", ")}, all`);
}

const aborted = new AbortController();

async function main(): Promise<void> {
  const forms = formsOf(values.store);
  const options = {
    requests: Math.ceil(whole("requests", 10_000_000) / forms.length),
    faults: whole("faults", 10_000),
    seconds: whole("seconds", 86_400),
    clients: whole("clients", 1_000),
    seed: whole("seed", 2 ** 31),
    untilHoldsEnd: !values.quick,
  };
  ensureSystemPackages();
  const onSignal = (signal: NodeJS.Signals): void => {
    // A second signal ends the run at once, with the processes that it has started.
    if (aborted.signal.aborted) process.exit(130);
    aborted.abort(new Error(`stopped by ${signal}`));
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  for (const form of forms) {
    const onFault = (kinds: readonly string[], answered: number) =>
      console.error(`${form}, ${answered} answered: ${kinds.join(" and ")}`);
    const { report, good, details } = await soak(
      { form, ...options, ...(values.verbose ? { onFault } : {}) },
      aborted.signal,
    );
    console.log(JSON.stringify(report));
    for (const detail of details) console.error(detail);
    if (!good) process.exitCode = 1;
  }
}

try {
  await main();
} catch (error) {
  const isUsage = error instanceof TypeError && error.message.startsWith("--");
  console.error(isUsage ? `${error.message}\n\n${USAGE}` : error);
  process.exitCode = isUsage ? 2 : 1;
  // A fault in progress may have started a process after the end. It ends with this process.
  if (aborted.signal.aborted) process.exit(130);
}
