/** Servers that the benchmark starts as processes of their own: waiting for them, and ending them. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";

const START_TIMEOUT_MS = 20_000;
const POLL_MS = 20;

/** @throws where the program could not be started */
export function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error(`${child.spawnfile} could not be started`);
  return child.pid;
}

/** @returns a function that ends a process and resolves when it has ended; call this before anything else can end it. */
export function stopper(child: ChildProcess): () => Promise<void> {
  const exited = once(child, "exit").catch(() => {});
  return async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGINT");
    await exited;
  };
}

/** Waits until the condition holds. @param what is waited for, for the error message */
export async function until(
  condition: () => Promise<boolean>,
  what: string,
  timeoutMs = START_TIMEOUT_MS,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`${what} did not start`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Whether a port of 127.0.0.1 accepts connections. */
export async function answers(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
