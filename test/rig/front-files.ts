/** What the rigs of nginx and Envoy share: a throw-away certificate, a child process with a proper end. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** A front that is not up by then fails its test. The machine may be busy; the front is not what is slow. */
const START_TIMEOUT_MS = 30_000;
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
  /** Everything printed so far. */
  output(): string;
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a program whose output is kept; a test that dies takes it along. */
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

/** Asks until the front is ready; a program tells readiness in no other way that all of them know. */
export async function untilReady(front: FrontProcess, isReady: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (await isReady().catch(() => false)) return;
    const ended = front.child.pid === undefined || front.child.exitCode !== null || front.child.signalCode !== null;
    if (ended || performance.now() > deadline) throw new Error(`the front did not start:\n${front.output()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
