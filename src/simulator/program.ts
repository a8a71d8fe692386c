/**
 * `tollgate simulator` (`npm run upstream`): the simulated model server as a program, at a pace for people who watch
 * it.
 */
import { LABEL, startSimulator } from "./server.ts";

/** Slow enough that a reply is seen to stream, fast enough not to wait for it. */
const PACE = { headersDelayMs: 120, firstDelayMs: 180, betweenMs: 35 };

/** Starts the simulator, prints its URL, and stops it at SIGINT or SIGTERM. @param port 0: any free port. */
export async function runSimulator(port: number): Promise<void> {
  const simulator = await startSimulator({ port, pace: PACE });
  process.stdout.write(`${LABEL}\nIt listens at ${simulator.url}\n`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void simulator.close());
}
