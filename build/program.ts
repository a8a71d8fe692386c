/**
 * Where a bundle begins. It is one program for both kinds of process: a gateway with `workers` starts this same file again
 * as a worker (node:cluster says which one this is), and everything else is the command line.
 */
import cluster from "node:cluster";

/** Set by build/warm.cjs only: called when all code of a start has been read, in place of the program. */
const { tollgateRead } = globalThis as { tollgateRead?: () => void };

if (tollgateRead) {
  const parts = [import("../src/cli/cli.ts"), import("../src/config/config.ts"), import("../src/gateway.ts")];
  void Promise.all([...parts, import("../src/demo.ts"), import("../src/workers/workers.ts")]).then(tollgateRead);
} else void (cluster.isWorker ? import("../src/worker.ts") : import("../src/main.ts"));
