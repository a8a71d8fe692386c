/** Ports for servers that cannot say themselves which one they took: Redis, nginx, Envoy and others. */
import { once } from "node:events";
import { createServer } from "node:net";
import process from "node:process";

/**
 * Below those that the system gives away by itself (32,768 and above on Linux): between the look and the server's own start any
 * connection could take one of these. A node of a Redis Cluster also listens on its port + `CLUSTER_BUS`.
 */
const FIRST = 12_000;
const CLUSTER_BUS = 10_000;
const COUNT = CLUSTER_BUS;
/** Each process begins at a place of its own, so that two that look at the same time do not find the same one. */
const PLACES = 16;
let next = process.pid * PLACES;

/** Ports of 127.0.0.1 that are free, all different; no test that runs beside this one looks at the same. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST + (next++ % COUNT);
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS))) ports.push(port);
  }
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listening = once(server, "listening").then(
    () => true,
    () => false,
  );
  server.listen({ port, host: "127.0.0.1", exclusive: true });
  if (!(await listening)) return false;
  await once(server.close(), "close");
  return true;
}
