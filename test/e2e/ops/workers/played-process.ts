/** A worker process that the test plays: it receives the parent's messages, and sends and does what the test wants. */
import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import type { FromWorker, ToWorker } from "../../../../src/workers/messages.ts";

export class PlayedProcess extends EventEmitter {
  pid: number | undefined = 1;
  connected = true;
  readonly told: ToWorker[] = [];
  readonly signals: string[] = [];

  /** The object that the parent gets instead of a child process. */
  get asChild(): ChildProcess {
    return this as unknown as ChildProcess;
  }

  send(message: ToWorker): void {
    this.told.push(message);
  }

  kill(signal: string): boolean {
    this.signals.push(signal);
    this.end(null, signal);
    return true;
  }

  say(message: FromWorker): void {
    this.emit("message", message);
  }

  prepare(generation = 1): void {
    this.say({ kind: "prepared", generation });
  }

  serve(generation = 1): void {
    this.prepare(generation);
    this.say({ kind: "serving", listen: { kind: "tcp", host: "127.0.0.1", port: 1 } });
  }

  end(code: number | null, signal: string | null = null): void {
    if (!this.connected) return;
    this.connected = false;
    this.emit("close", code, signal);
  }
}
