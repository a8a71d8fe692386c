/** Runs the command line against a real admin listener and captures its output. */
import type { TestContext } from "node:test";
import { type CliIo, runCli } from "../../../src/cli/cli.ts";
import { ADMIN_TOKEN, type RunningConsole, startConsole } from "../console/running-console.ts";

export interface Ran {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command in an empty environment, unless `changes` says otherwise. */
export async function run(argv: readonly string[], changes: Partial<CliIo> = {}): Promise<Ran> {
  let out = "";
  let err = "";
  const unexpected = () => Promise.reject(new Error("not expected to run"));
  const status = await runCli(argv, {
    stdout: { write: (text) => (out += text) },
    stderr: { write: (text) => (err += text) },
    env: {},
    fetch,
    serve: unexpected,
    check: unexpected,
    ...changes,
  });
  return { status, out, err };
}

/** An admin listener, and a function that runs commands against it with its token. */
export async function startGateway(
  t: TestContext,
  changes: Parameters<typeof startConsole>[1] = {},
): Promise<{ console: RunningConsole; tollgate: (...argv: string[]) => Promise<Ran>; env: Record<string, string> }> {
  const console = await startConsole(t, changes);
  const env = { TOLLGATE_ADMIN_URL: console.url, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  return { console, env, tollgate: (...argv) => run(argv, { env }) };
}
