/** Ports for servers that cannot report the port that they took: Redis, nginx, Envoy and others. */
import { once } from "node:events";
import { createServer } from "node:net";
import process from "node:process";

/**
 * Below the range from which the system assigns ports (32,768 and above on Linux), because any connection could take
 * such a port between the check and the server's start. A node of a Redis Cluster also listens on its port +
 * `CLUSTER_BUS`.
 */
const FIRST = 12_000;
const CLUSTER_BUS = 10_000;
const COUNT = CLUSTER_BUS;
/** Each process begins at another position, so that two that search at the same time do not find the same port. */
const PLACES = 16;
let next = process.pid * PLACES;

/** Different free ports of 127.0.0.1, which tests in other processes do not get at the same time. */
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
