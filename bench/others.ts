/**
 * Other gateways, if their program is on the path: LiteLLM's proxy (`litellm`, with its extra `proxy`, or `TOLLGATE_LITELLM`) and Portkey's
 * gateway (`gateway` of the package `@portkey-ai/gateway`, or `TOLLGATE_PORTKEY`). Each is set up by its own documentation and does as
 * little as possible: one key or none, no money, no limits.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { litellmProgram } from "../test/rig/litellm.ts";
import { freePorts } from "../test/rig/ports.ts";
import { BENCH_MODELS, type Case } from "./cases.ts";
import { childrenOf } from "./cpu.ts";
import { answers, pidOf, stopper, until } from "./started.ts";
import type { Running, StartOptions, Subject } from "./subjects.ts";

const LITELLM_KEY = "sk-benchmark-key-of-a-proxy-of-others";
/** Python reads a few thousand files first. */
const START_TIMEOUT_MS = 120_000;
const PORTKEY_PACKAGE = join("@portkey-ai", "gateway");

/** The cases that both can do like the other subjects: chat completions of a chat server, with a valid key. */
const isPlainChat = ({ protocol, body, key }: Case): boolean =>
  protocol === "chat" && key === undefined && JSON.parse(body).model === BENCH_MODELS.chat;

export const OTHERS: readonly Subject[] = [
  // A request takes it a hundred times as long as other subjects.
  { name: "LiteLLM", program: litellmProgram, does: isPlainChat, share: 0.05, start: startLitellm },
  // Its version 1.15.2 answers 500 here if the server streams ("immutable" headers).
  {
    name: "Portkey",
    program: portkeyProgram,
    does: (one) => isPlainChat(one) && one.unit === "request",
    start: startPortkey,
  },
];

/** The installed gateway's path; a program of this name may be anybody's. */
function portkeyProgram(): string | undefined {
  const own = process.env.TOLLGATE_PORTKEY;
  if (own) return own;
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const found = folders.map((folder) => join(folder, "gateway")).filter((path) => existsSync(path));
  return found.find((path) => realpathSync(path).includes(PORTKEY_PACKAGE));
}

async function startLitellm({ upstreamPort }: StartOptions): Promise<Running> {
  const litellm_params = {
    model: `openai/${BENCH_MODELS.chat}`,
    api_base: `http://127.0.0.1:${upstreamPort}/v1`,
    api_key: "none",
  };
  const config = JSON.stringify({
    model_list: [{ model_name: BENCH_MODELS.chat, litellm_params }],
    general_settings: { master_key: LITELLM_KEY },
    litellm_settings: { telemetry: false, num_retries: 0 },
  });
  return startOther("LiteLLM", LITELLM_KEY, (dir, port) => {
    const file = join(dir, "config.yaml");
    writeFileSync(file, config);
    // Otherwise it would load model prices from the internet; it has built-in ones.
    const env = {
      ...process.env,
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      LITELLM_TELEMETRY: "False",
      LITELLM_LOG: "ERROR",
    };
    return { command: [litellmProgram() ?? "", "--config", file, "--host", "127.0.0.1", "--port", `${port}`], env };
  });
}

/** It has no configuration: each request names its upstream. */
async function startPortkey({ upstreamPort }: StartOptions): Promise<Running> {
  const headers = { "x-portkey-provider": "openai", "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1` };
  const program = portkeyProgram() ?? "";
  const running = await startOther("Portkey", "none", (_, port) => ({
    command: [process.execPath, realpathSync(program), "--headless", `--port=${port}`],
    env: process.env,
  }));
  return { ...running, headers };
}

/** Starts a program in its own folder; its output is shown if it does not start. */
async function startOther(
  name: string,
  key: string,
  commandOf: (dir: string, port: number) => { readonly command: readonly string[]; readonly env: NodeJS.ProcessEnv },
): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-other-"));
  const log = join(dir, "log");
  const [port = 0] = await freePorts(1);
  const { command, env } = commandOf(dir, port);
  const [program = "", ...args] = command;
  const descriptor = openSync(log, "w");
  const child: ChildProcess = spawn(program, args, { cwd: dir, env, stdio: ["ignore", descriptor, descriptor] });
  closeSync(descriptor);
  const end = stopper(child);
  const stop = () => end().finally(() => rmSync(dir, { recursive: true, force: true }));
  try {
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    await until(async () => hasEnded() || (await answers(port)), name, START_TIMEOUT_MS);
    if (hasEnded()) throw new Error(`${name} ended with ${child.exitCode ?? child.signalCode}`);
  } catch (error) {
    const said = readFileSync(log, "utf8");
    await stop();
    throw new Error(`${String(error)}:\n${said}`);
  }
  const pid = pidOf(child);
  return { url: `http://127.0.0.1:${port}`, key, pids: [pid, ...childrenOf(pid)], behind: [], stop };
}
