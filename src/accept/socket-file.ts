/** The file of a unix socket: a stale file blocks the next start, a live one belongs to another process. */
import { chmod, lstat, unlink } from "node:fs/promises";
import { connect } from "node:net";

/** The front's user reaches the socket through its group; no other user can. */
const SOCKET_MODE = 0o660;

/**
 * Removes a socket file on which nothing listens. A file that is not a socket stays, and listening fails on it.
 * @throws Error with code EADDRINUSE if a process listens on it.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (!found?.isSocket()) return;
  if (await isAnswered(path)) {
    throw Object.assign(new Error(`another process listens on ${path}`), { code: "EADDRINUSE" });
  }
  await unlink(path);
}

/** Sets the mode of a new socket file. */
export async function restrictSocket(path: string): Promise<void> {
  await chmod(path, SOCKET_MODE);
}

function isAnswered(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect(path);
  probe.on("connect", () => {
    probe.destroy();
    resolve(true);
  });
  // Only a refused connection proves that nothing listens; a full backlog or missing permissions do not.
  probe.on("error", (error: NodeJS.ErrnoException) =>
    resolve(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
  );
  return promise;
}
