/**
 * A second third-party model server: LiteLLM's proxy, if it is installed (`litellm` on the path, or `TOLLGATE_LITELLM`,
 * with its extra `proxy`). Its upstream is aimock as a chat server, so LiteLLM itself writes the two other protocols.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { ThirdParty } from "./aimock.ts";
import { startProcess, untilReady } from "./front-files.ts";
import { freePorts } from "./ports.ts";

/** It starts only with a master key that is not too short. */
const KEY = "sk-key-of-the-tests-for-a-proxy-of-others-0123456789";

/** The servers that the tests of the nine directions use in this run, as text. */
export function askedServers(): string {
  const program = litellmProgram();
  const proxy = program === undefined ? "no litellm on the path, TOLLGATE_LITELLM is not set" : `LiteLLM's ${program}`;
  return `aimock (${proxy})`;
}

/** The path of the installed proxy; undefined if there is none. */
export function litellmProgram(): string | undefined {
  const own = process.env.TOLLGATE_LITELLM;
  if (own) return own;
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, "litellm")).find((path) => existsSync(path));
}

/** Starts the proxy as a separate process, with a server behind it that gives programmed answers. */
export async function startLitellm(program: string): Promise<ThirdParty> {
  // The test runner itself only asks which servers there are.
  const { startAimock } = await import("./aimock.ts");
  const behind = await startAimock();
  const dir = mkdtempSync(join(tmpdir(), "tollgate-litellm-"));
  const file = join(dir, "config.yaml");
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(file, JSON.stringify(configuration(behind.url)));
  // It would fetch the prices of its models from the internet, although it has a copy.
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
