/**
 * A second model server of somebody else's: LiteLLM's proxy, where one is installed (`litellm` on the path, or `TOLLGATE_LITELLM`,
 * with its extra `proxy`). It has aimock behind it as a chat server, so what it says on the two other protocols is its own writing.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { ThirdParty } from "./aimock.ts";
import { startProcess, untilReady } from "./front-files.ts";
import { freePorts } from "./ports.ts";

/** It starts with none that is short. */
const KEY = "sk-key-of-the-tests-for-a-proxy-of-others-0123456789";

/** Whose servers the tests of the nine directions ask in this run, in words. */
export function askedServers(): string {
  const program = litellmProgram();
  const proxy = program === undefined ? "no litellm on the path, TOLLGATE_LITELLM is not set" : `LiteLLM's ${program}`;
  return `aimock (${proxy})`;
}

/** The installed proxy's path; undefined where there is none. */
export function litellmProgram(): string | undefined {
  const own = process.env.TOLLGATE_LITELLM;
  if (own) return own;
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, "litellm")).find((path) => existsSync(path));
}

/** Starts the proxy as a process of its own, with a server behind it that says what it is told to. */
export async function startLitellm(program: string): Promise<ThirdParty> {
  // The run itself only asks which servers there are.
  const { startAimock } = await import("./aimock.ts");
  const behind = await startAimock();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-litellm-"));
  const file = join(dir, "config.yaml");
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(file, JSON.stringify(configuration(behind.url)));
  // It would read the prices of its models from the internet, and knows them without.
  const command = ["LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_TELEMETRY=False", program];
  const proxy = startProcess("env", [...command, "--config", file, "--host", "127.0.0.1", "--port", `${port}`]);
  const stop = async (): Promise<void> => {
    await proxy.stop("SIGTERM");
    await behind.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await untilReady(proxy, async () => (await fetch(`${url}/health/liveliness`)).ok);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ...behind, name: "LiteLLM's proxy", url, key: KEY, stop };
}

function configuration(behind: string): object {
  const litellm_params = { model: "hosted_vllm/*", api_base: `${behind}/v1`, api_key: "none" };
  return {
    model_list: [{ model_name: "*", litellm_params }],
    general_settings: { master_key: KEY },
    litellm_settings: { telemetry: false, drop_params: true, num_retries: 0 },
  };
}
