/**
 * The file of a unix socket: a stale one is in the way of the next start, a live one belongs to somebody.
 */
import { chmod, lstat, unlink } from "node:fs/promises";
import { connect } from "node:net";

/** The front's user reaches the socket through the group; nobody else does. */
const SOCKET_MODE = 0o660;

/**
 * Removes a socket file on which nobody listens. A file that is no socket stays, and the listen fails on it.
 * @throws Error with code EADDRINUSE when somebody does listen.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (!found?.isSocket()) return;
  if (await isAnswered(path)) {
    throw Object.assign(new Error(`another process listens on ${path}`), { code: "EADDRINUSE" });
  }
  await unlink(path);
}

/** Sets the mode of a socket file that was just made. */
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
  // Only a refusal proves that nobody is there; a full backlog or missing rights do not.
  probe.on("error", (error: NodeJS.ErrnoException) =>
    resolve(error.code !== "ECONNREFUSED" && error.code !== "ENOENT"),
  );
  return promise;
}
