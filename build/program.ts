/**
 * The entry of a bundle. It is one program for both kinds of process: a gateway with `workers` starts this same file as a worker
 * (node:cluster says which one this is); otherwise it is the command line. A thread of either loads a configuration
 * (src/config/thread/thread.ts).
 */
import cluster from "node:cluster";
import { isMainThread } from "node:worker_threads";
import { tuneHeap } from "../src/telemetry/heap.ts";

/**
 * Set by build/warm.cjs only. If it is set, all code of a start is loaded but the program is not run; then this is called with the function
 * that the program calls before it loads more.
 */
const { tollgateRead } = globalThis as { tollgateRead?: (tune: () => void) => void };

/** Loads all code of a start, and a configuration: its parser and schema are a large part of what a start compiles. */
async function readAll(): Promise<void> {
  const config = import("../src/config/config.ts");
  const parts = [import("../src/cli/cli.ts"), config, import("../src/gateway.ts")];
  await Promise.all([...parts, import("../src/demo.ts"), import("../src/workers/workers.ts")]);
  const { demoConfig, loadConfig } = await config;
  const text = demoConfig({ upstreamUrl: "http://127.0.0.1:9", dataDir: "data", listen: "127.0.0.1:8787" });
  loadConfig({ text, env: {} });
}

if (!isMainThread) void import("../src/config/thread/program.ts");
else if (tollgateRead) void readAll().then(() => tollgateRead(tuneHeap));
else void (cluster.isWorker ? import("../src/worker.ts") : import("../src/main.ts"));
