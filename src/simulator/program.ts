/** `tollgate simulator` (`npm run upstream`): the simulated model server on its own, paced for a person's eyes. */
import { LABEL, startSimulator } from "./server.ts";

/** Slow enough to see a reply being written, fast enough not to wait for it. */
const PACE = { headersDelayMs: 120, firstDelayMs: 180, betweenMs: 35 };

/** Starts it, says where it listens, and stops it at SIGINT or SIGTERM. @param port 0 is any free one. */
export async function runSimulator(port: number): Promise<void> {
  const simulator = await startSimulator({ port, pace: PACE });
  process.stdout.write(`${LABEL}\nIt listens at ${simulator.url}\n`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void simulator.close());
}
