/**
 * Connections that the parent has handed to a worker and that the worker has not taken. node:cluster forgets them when
 * the worker dies, or when it was the last one and closes, and since the parent has them open, too, their clients would
 * wait for ever: one for each worker that is killed or stopped at the wrong moment.
 *
 * node:cluster has no public way to see a hand-over, so this looks at its messages (`newconn`, its `ack`, and `close`, in
 * lib/internal/cluster/round_robin_handle.js of Node). Were they to change, connections would be forgotten as before;
 * test/e2e/ops/workers/a-connection-that-a-dead-worker-never-took-goes-to-another.test.ts would tell.
 */
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { environment } from "../config/config.ts";

interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
  /** Whether the worker has taken the connection; node:cluster gives one that was not taken to the next worker. */
  accepted?: boolean;
}

/**
 * Starts a worker process.
 * @param othersServe whether another one is connected and serves, asked when this one dies or closes.
 * @returns it, with what it is handed followed.
 */
export function forkWorker(othersServe: () => boolean): ChildProcess {
  // One heap of malloc for all threads (docs/operation.md, "Memory"): a process can only begin with it.
  const worker = cluster.fork({ MALLOC_ARENA_MAX: environment().MALLOC_ARENA_MAX ?? "1" });
  // An answer of node:cluster's own to a worker that has just been killed fails (EPIPE), and is told here as well as by the
  // process. With no listener it would be an uncaught exception, and end the parent with all its workers.
  worker.on("error", () => {});
  followHandOvers(worker.process, othersServe);
  return worker.process;
}

/**
 * Follows what this worker is handed. What it has not taken when it dies goes to another one, and is closed when there is
 * none, so that its client knows.
 * @param child before anything else listens to it.
 */
function followHandOvers(child: ChildProcess, othersServe: () => boolean): void {
  const untaken = new Set<number>();
  let isCutOff = false;
  /** Whether it has closed when nobody else served: node:cluster has no list left from which to pick the next one. */
  let wasLast = false;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.cmd === "NODE_CLUSTER" && message.act === "newconn") untaken.add(message.seq as number);
    return send(message, ...rest);
  };
  // Earlier than node:cluster's own listener: one that is said to be taken is closed in the parent.
  child.prependListener("internalMessage", (message: ClusterMessage) => {
    if (message.cmd !== "NODE_CLUSTER") return;
    if (message.act === "close") wasLast = !othersServe();
    if (message.ack === undefined || !untaken.delete(message.ack)) return;
    message.accepted ||= wasLast || !othersServe();
  });
  // Later than node:cluster's own listener, which takes the worker off its list.
  child.once("disconnect", () => {
    isCutOff = true;
    for (const ack of [...untaken]) child.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: false });
  });
  // With a connection on its way Node waits for the dead to take it before it says that the channel is closed.
  child.once("close", () => {
    if (!isCutOff) child.emit("disconnect");
  });
}
