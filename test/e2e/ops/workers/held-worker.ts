/**
 * Loaded into every process of a gateway (`--import`): a worker stops itself (SIGSTOP) at a step of its life for which
 * there is a file in the folder HOLD_AT, reports this on standard output, and continues when the test sends SIGCONT.
 * The steps are `spawned`, and before a message of its parent is handled (`hear-KIND`) or one of its own is sent
 * (`say-KIND`).
 */
import cluster from "node:cluster";
import { rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

type Message = { readonly kind?: string };

function hold(step: string): void {
  try {
    rmSync(join(process.env.HOLD_AT as string, step));
  } catch {
    return;
  }
  process.stdout.write(`${JSON.stringify({ held: step, pid: process.pid })}\n`);
  process.kill(process.pid, "SIGSTOP");
}

if (cluster.isWorker) {
  hold("spawned");
  const on = process.on.bind(process) as (event: string, listener: (...args: never[]) => void) => NodeJS.Process;
  const send = process.send?.bind(process) as (...args: unknown[]) => boolean;
  process.on = (event: string, listener: (...args: never[]) => void) => {
    if (event !== "message") return on(event, listener);
    return on(event, (message: Message) => {
      hold(`hear-${message.kind}`);
      (listener as (message: Message) => void)(message);
    });
  };
  process.send = (message: Message, ...rest: unknown[]) => {
    hold(`say-${message.kind}`);
    return send(message, ...rest);
  };
}
