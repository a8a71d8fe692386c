/** The output of `npm run build`, built once for the tests of a file, and programs run as users run them. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const BUILD = fileURLToPath(new URL("../../../../build/build.ts", import.meta.url));

/** A folder that is removed at the end of the test file. */
export function scratch(): { readonly dir: string; remove(): void } {
  // With a space and non-ASCII characters, as some users' folders have.
  const dir = mkdtempSync(join(tmpdir(), "tollgate built "));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Builds into `out` under this name. @returns what was printed. */
export function build(out: string, name: string, only?: "executable" | "package"): string {
  const args = [BUILD, "--out", out, "--build", name, ...(only ? ["--only", only] : [])];
  return execFileSync(process.execPath, args, { encoding: "utf8", env: WITH_NODE });
}

/** The environment of a machine on which the Node of the dependencies is installed. */
export const WITH_NODE = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };
/** The environment of a machine without Node, and without anything else. */
export const WITHOUT_NODE = { PATH: "/nonexistent" };

export interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command to its end, by default in a new empty folder. */
export function run(command: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<Ran> {
  const own = cwd ?? mkdtempSync(join(tmpdir(), "tollgate-empty-"));
  mkdirSync(own, { recursive: true });
  const [program, ...args] = command;
  return new Promise((resolve) => {
    execFile(program as string, args, { cwd: own, env }, (error, out, err) => {
      if (cwd === undefined) rmSync(own, { recursive: true });
      const code = error ? (typeof error.code === "number" ? error.code : -1) : 0;
      resolve({ status: code, out, err: error && code === -1 ? `${error.message}${err}` : err });
    });
  });
}

/** Receives spans as OTLP over HTTP, and resolves `first` with the bytes of the first batch. */
export async function startSpanSink(): Promise<{
  readonly url: string;
  readonly first: Promise<Buffer>;
  stop(): void;
}> {
  const first = Promise.withResolvers<Buffer>();
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      first.resolve(Buffer.concat(pieces));
      res.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    first: first.promise,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
