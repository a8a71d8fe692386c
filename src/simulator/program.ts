/** `npm run upstream`: the simulated model server on its own, paced for a person's eyes. */

import { parseArgs } from "node:util";
import { LABEL, startSimulator } from "./server.ts";

/** Slow enough to see a reply being written, fast enough not to wait for it. */
const PACE = { headersDelayMs: 120, firstDelayMs: 180, betweenMs: 35 };

const { values } = parseArgs({ options: { port: { type: "string", default: "0" } } });
const port = Number(values.port);
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`--port: "${values.port}" is not a port`);
  process.exit(2);
}

const simulator = await startSimulator({ port, pace: PACE });
console.log(`${LABEL}\nIt listens at ${simulator.url}`);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void simulator.close());
}
