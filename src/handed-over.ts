/**
 * Connections that the parent has handed to a worker and that the worker has not taken. node:cluster forgets them when
 * the worker dies, and since the parent has them open, too, their clients would wait for ever: a worker that is killed
 * leaves at most one, and so does one that is stopped first.
 *
 * node:cluster has no public way to see a hand-over, so this looks at its messages (`newconn` and its `ack`, in
 * lib/internal/cluster/round_robin_handle.js of Node). Were they to change, connections would be forgotten as before;
 * test/workers/a-connection-that-a-dead-worker-never-took-goes-to-another.test.ts would tell.
 */
import type { ChildProcess } from "node:child_process";

interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/**
 * Follows what this worker is handed; when it dies, what it has not taken goes to another one.
 * @param child of `cluster.fork()`, before anything else listens to it.
 * @param othersServe whether another one is connected and serves, asked at that moment; else the connections are closed.
 */
export function followHandOvers(child: ChildProcess, othersServe: () => boolean): void {
  const untaken = new Set<number>();
  let isCutOff = false;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (message: ClusterMessage, ...rest: unknown[]) => {
    if (message.cmd === "NODE_CLUSTER" && message.act === "newconn") untaken.add(message.seq as number);
    return send(message, ...rest);
  };
  child.on("internalMessage", ({ cmd, ack }: ClusterMessage) => {
    if (cmd === "NODE_CLUSTER" && ack !== undefined) untaken.delete(ack);
  });
  // Later than node:cluster's own listener, which takes the worker off its list.
  child.once("disconnect", () => {
    isCutOff = true;
    // A worker that is closing answers `accepted: false`, and node:cluster then asks the next one.
    const accepted = !othersServe();
    for (const ack of [...untaken]) child.emit("internalMessage", { cmd: "NODE_CLUSTER", ack, accepted });
  });
  // With a connection on its way Node waits for the dead to take it before it says that the channel is closed.
  child.once("close", () => {
    if (!isCutOff) child.emit("disconnect");
  });
}
