/**
 * Counts the sockets of this process that remain after their connections have ended. A leak keeps one or both ends of
 * each connection.
 */
import { Socket } from "node:net";
import { queryObjects } from "node:v8";

/**
 * @param pass opens a connection, and resolves when both ends are closed.
 * @returns the sockets that remain after `rounds` passes.
 */
export async function socketsKeptBy(pass: () => Promise<void>, rounds: number): Promise<number> {
  // What only the first pass creates is not a leak.
  await pass();
  const before = queryObjects(Socket, { format: "count" });
  for (let round = 0; round < rounds; round += 1) await pass();
  return queryObjects(Socket, { format: "count" }) - before;
}
