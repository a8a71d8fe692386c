/** Shared by the rigs of nginx and Envoy: a temporary certificate, and a child process that is ended properly. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

const POLL_MS = 10;

export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes a self-signed certificate for `localhost` in this folder. */
export function makeCertificate(dir: string): Certificate {
  const certFile = join(dir, "front.crt");
  const keyFile = join(dir, "front.key");
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", keyFile];
  execFileSync("openssl", ["req", "-x509", ...key, "-out", certFile, "-days", "2", ...subject], { stdio: "ignore" });
  return { certFile, keyFile };
}

export interface FrontProcess {
  readonly child: ChildProcess;
  /** The output so far. */
  output(): string;
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a program and keeps its output. It is killed with the test process. */
export function startProcess(program: string, args: readonly string[]): FrontProcess {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const printed: string[] = [];
  child.stdout.on("data", (data: Buffer) => printed.push(String(data)));
  child.stderr.on("data", (data: Buffer) => printed.push(String(data)));
  const exited = once(child, "exit");
  // `untilReady` reports a missing program.
  child.on("error", (error) => printed.push(String(error)));
  exited.catch(() => undefined);
  const reap = (): void => void child.kill("SIGTERM");
  process.once("exit", reap);
  child.once("exit", () => process.removeListener("exit", reap));
  return {
    child,
    output: () => printed.join(""),
    async stop(signal) {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await exited;
    },
  };
}

/** Polls until the front is ready, because the programs have no common way to signal it. */
export async function untilReady(front: FrontProcess, isReady: () => Promise<boolean>): Promise<void> {
  for (;;) {
    if (await isReady().catch(() => false)) return;
    const ended = front.child.pid === undefined || front.child.exitCode !== null || front.child.signalCode !== null;
    if (ended) throw new Error(`the front did not start:\n${front.output()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
