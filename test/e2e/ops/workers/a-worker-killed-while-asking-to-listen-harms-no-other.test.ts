/**
 * docs/failure-model.md row G3: if a worker is killed at the moment in which node:cluster answers it (it has asked to
 * listen), only this worker is dead, and the parent has no uncaught exception.
 */
import assert from "node:assert/strict";
import cluster from "node:cluster";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { forkWorker } from "../../../../src/workers/handed-over.ts";

test("the parent survives if its answer cannot be delivered", async () => {
  cluster.setupPrimary({ exec: fileURLToPath(new URL("./listening-worker.ts", import.meta.url)), args: [] });
  const child = forkWorker(() => false);
  const failed = once(child, "error");
  child.prependListener("internalMessage", ({ act }: { readonly act?: string }) => {
    if (act !== "queryServer") return;
    process.kill(child.pid as number, "SIGKILL");
    // In the same turn, before Node notices the death: the answer is written to a closed channel.
    while (!isDead(child.pid as number));
  });
  // Without the listener on the worker the test would end here, as the parent did.
  const [error] = (await failed) as [NodeJS.ErrnoException];
  assert.equal(error.code, "EPIPE");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  assert.equal(child.signalCode, "SIGKILL");
});

/**
 * Whether all threads of a process have ended: while one of them has not, data written to the process still arrives.
 */
function isDead(pid: number): boolean {
  const state = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.charAt(0);
  return state === "Z" && readdirSync(`/proc/${pid}/task`).length === 1;
}
