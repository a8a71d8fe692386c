/**
 * Tracks connections that the parent has handed to a worker and that the worker has not accepted. node:cluster forgets
 * them if the worker dies, or if it was the last one and closes. The parent has them open too, so their clients would
 * wait forever: one for each worker that is killed or stopped at the wrong moment.
 *
 * node:cluster has no public API for this, so this code reads its internal messages (`newconn`, its `ack`, and `close`,
 * in lib/internal/cluster/round_robin_handle.js of Node). If they change, connections are forgotten again and
 * test/e2e/ops/workers/a-connection-of-a-dead-worker-goes-to-another-worker.test.ts fails.
 */
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { environment } from "../config/config.ts";

interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
  /** Whether the worker has accepted the connection; if not, node:cluster gives it to the next worker. */
  accepted?: boolean;
}

/**
 * Starts a worker process and tracks the connections that it is handed.
 * @param othersServe whether another worker is connected and serves; called when this one dies or closes.
 */
export function forkWorker(othersServe: () => boolean): ChildProcess {
  // One malloc arena for all threads (docs/operation.md, "Memory"). It can only be set when a process starts.
  const worker = cluster.fork({ MALLOC_ARENA_MAX: environment().MALLOC_ARENA_MAX ?? "1" });
  // If node:cluster answers a worker that has just been killed, the write fails (EPIPE), and the error is emitted here
  // as well as by the process. Without a listener it would be an uncaught exception and end the parent with all its
  // workers.
  worker.on("error", () => {});
  followHandOvers(worker.process, othersServe);
  return worker.process;
}

/**
 * Tracks the connections that this worker is handed. If it dies, those that it has not accepted go to another worker.
 * If there is none, they are closed, so that their clients notice.
 * @param child must not have other listeners yet.
 */
function followHandOvers(child: ChildProcess, othersServe: () => boolean): void {
  const untaken = new Set<number>();
  let isCutOff = false;
  /**
   * Whether it closed while no other worker served: node:cluster then has no list from which to pick the next worker.
   */
  let wasLast = false;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.cmd === "NODE_CLUSTER" && message.act === "newconn") untaken.add(message.seq as number);
    return send(message, ...rest);
  };
  // Runs before node:cluster's own listener, which closes a connection in the parent if it is reported as accepted.
  child.prependListener("internalMessage", (message: ClusterMessage) => {
    if (message.cmd !== "NODE_CLUSTER") return;
    if (message.act === "close") wasLast = !othersServe();
    if (message.ack === undefined || !untaken.delete(message.ack)) return;
    message.accepted ||= wasLast || !othersServe();
  });
  // Runs after node:cluster's own listener, which removes the worker from its list.
  child.once("disconnect", () => {
    isCutOff = true;
    for (const ack of [...untaken]) child.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted: false });
  });
  // If a connection is in flight, Node waits for the dead worker to accept it before it reports that the channel is
  // closed.
  child.once("close", () => {
    if (!isCutOff) child.emit("disconnect");
  });
}
