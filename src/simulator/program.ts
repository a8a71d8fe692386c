/** `npm run upstream`: the simulated model server on its own, paced for a person's eyes. */

import { parseArgs } from "node:util";
import { LABEL, startSimulator } from "./server.ts";

/** Slow enough to see a reply being written, fast enough not to wait for it. */
const PACE = { headersDelayMs: 120, firstDelayMs: 180, betweenMs: 35 };

const USAGE = `Usage: npm run upstream -- [--port PORT]

A simulated model server for chat completions, messages and responses, on loopback.

  --port PORT  where it listens; any free port when left out
  --help       this text
`;

/** The port to listen on. Ends the program where the arguments ask for help, or are none. */
function readPort(): number {
  try {
    const options = { port: { type: "string", default: "0" }, help: { type: "boolean", short: "h" } } as const;
    const { values } = parseArgs({ options });
    if (values.help) {
      process.stdout.write(USAGE);
      process.exit(0);
    }
    const port = Number(values.port);
    if (values.port !== "" && Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
    throw new Error(`--port: "${values.port}" is not a port`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

const port = readPort();

const simulator = await startSimulator({ port, pace: PACE });
console.log(`${LABEL}\nIt listens at ${simulator.url}`);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void simulator.close());
}
