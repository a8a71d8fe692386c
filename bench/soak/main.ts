/**
 * `npm run soak`: one gateway under a given number of streams for a given time, with faults on both sides. Prints one JSON line at the end;
 * exit status 1 if anything was not accounted for. How to read it: docs/soak.md.
 *
 *     node bench/soak/main.ts [--seconds 600] [--streams 500] [--store embedded|redis] [--seed N] [--event-ms 250]
 */
import process from "node:process";
import { programOptions } from "../../test/rig/program-options.ts";
import { soak } from "./run.ts";

const { values } = programOptions({
  options: {
    seconds: { type: "string", default: "600" },
    streams: { type: "string", default: "500" },
    store: { type: "string", default: "embedded" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    "event-ms": { type: "string", default: "250" },
  },
});
if (values.store !== "embedded" && values.store !== "redis") {
  console.error(`--store: "${values.store}" is neither embedded nor redis`);
  process.exit(2);
}

let samples = 0;
const result = await soak({
  seconds: whole("seconds", values.seconds),
  streams: whole("streams", values.streams),
  store: values.store,
  seed: whole("seed", values.seed),
  eventMs: whole("event-ms", values["event-ms"]),
  onSample({ seconds, rssMib, heapMib, descriptors, inFlight, loopP99Ms }, answered) {
    if (samples++ % 8 !== 0) return;
    const figures = [
      `${seconds.toFixed(0)} s`,
      `${answered} answered`,
      `${inFlight} in flight`,
      `RSS ${rssMib.toFixed(0)} MiB`,
      `heap ${heapMib.toFixed(0)} MiB`,
      `${descriptors} descriptors`,
      `loop p99 ${loopP99Ms.toFixed(0)} ms`,
    ];
    console.error(figures.join(", "));
  },
});
console.log(JSON.stringify(result));
process.exitCode = result.ok ? 0 : 1;

function whole(name: string, text: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text);
  console.error(`--${name}: "${text}" is not a whole number above 0`);
  process.exit(2);
}
