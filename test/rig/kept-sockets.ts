/** How many sockets of this process are still there behind connections that have ended: a leak keeps one, or both ends, of each. */
import { Socket } from "node:net";
import { queryObjects } from "node:v8";

/**
 * @param pass opens a connection, and resolves when both ends of it are gone.
 * @returns the sockets that as many passes as `rounds` have left.
 */
export async function socketsKeptBy(pass: () => Promise<void>, rounds: number): Promise<number> {
  // What is made for the first one only is no leak.
  await pass();
  const before = queryObjects(Socket, { format: "count" });
  for (let round = 0; round < rounds; round += 1) await pass();
  return queryObjects(Socket, { format: "count" }) - before;
}
