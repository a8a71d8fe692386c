/**
 * A reload, with every startup secret replaced at the same time, while a worker is held at one step of its life
 * (held-worker.ts); then the worker continues, or is killed. In the end all workers price by the new configuration.
 */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { Changes } from "../../../rig/config.ts";
import type { GatewayProcess } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";
import {
  aMoment,
  gone,
  lines,
  metricSum,
  metricsPage,
  pricedAt,
  type Scene,
  untilAllServe,
  workerPids,
  workersScene,
} from "./rig.ts";

const HELD = fileURLToPath(new URL("./held-worker.ts", import.meta.url));
const PASSWORD = "the-password-of-the-start";
const WORKERS = 2;
/** The new price of a million output tokens. */
const OUTPUT_USD = 7;
/** Connections go to the workers in turn; this many reach both. */
const REQUESTS = 4;

export interface Step {
  readonly at: string;
  /** What brings worker 1 to this step. */
  readonly by: "SIGKILL" | "SIGTERM" | "reload";
  /**
   * Whether it might price a request at this step, so that the reload must not be reported as in force before it has
   * it.
   */
  readonly mayAdmit: boolean;
}

export const STEPS: readonly Step[] = [
  { at: "spawned", by: "SIGKILL", mayAdmit: false },
  { at: "hear-start", by: "SIGKILL", mayAdmit: false },
  { at: "say-prepared", by: "SIGKILL", mayAdmit: false },
  { at: "hear-open", by: "SIGKILL", mayAdmit: true },
  { at: "say-serving", by: "SIGKILL", mayAdmit: true },
  { at: "hear-reload", by: "reload", mayAdmit: true },
  { at: "say-configured", by: "reload", mayAdmit: true },
  { at: "say-draining", by: "SIGTERM", mayAdmit: true },
];

/** @param then what happens to the worker that is held. */
export async function reloadAtEveryStep(t: TestContext, then: "SIGCONT" | "SIGKILL"): Promise<void> {
  const scene = await workersScene(t, { password: PASSWORD });
  const holdAt = join(scene.dir, "hold");
  mkdirSync(holdAt);
  const secret = (name: string) => join(scene.dir, name);
  const change: Changes = {
    // A process that was stopped has just had a long turn of its event loop, for which it would refuse requests.
    overload: { loop_delay: "10m" },
    store: `file:${secret("store")}`,
    admin_token: `file:${secret("admin-token")}`,
    sealing_keys: [`file:${secret("sealing-key")}`],
  };
  for (const step of STEPS) {
    // The startup secrets are the right ones again for each gateway.
    writeSecrets(secret, scene.storeUrl);
    // A new gateway for each step: restarts of a worker that ends often are delayed longer and longer.
    const gateway = await scene.start(WORKERS, change, { nodeArgs: ["--import", HELD], env: { HOLD_AT: holdAt } });
    await atStep(step, then, { scene, gateway, holdAt, change, secret });
    const waiting = lines(gateway).filter(({ restart }) => restart !== undefined);
    assert.deepEqual(
      waiting.at(-1)?.restart,
      ["admin_token", "store", "sealing_keys"],
      "the settings that need a restart are logged by name",
    );
    assert.doesNotMatch(gateway.output(), /wrong-|another-/, "their values are not logged");
    assert.equal(await gateway.stop("SIGINT"), 0, gateway.output());
  }
}

interface Place {
  readonly scene: Scene;
  readonly gateway: GatewayProcess;
  readonly holdAt: string;
  readonly change: Changes;
  readonly secret: (name: string) => string;
}

async function atStep(step: Step, then: "SIGCONT" | "SIGKILL", place: Place): Promise<void> {
  const { scene, gateway, holdAt, change, secret } = place;
  const reload = () => {
    // None of the new secrets is right.
    writeFileSync(secret("store"), scene.storeUrl.replace(PASSWORD, "wrong-password"));
    writeFileSync(secret("admin-token"), "another-admin-token");
    writeFileSync(secret("sealing-key"), "another-sealing-key-of-32-characters-or-more");
    writeFileSync(gateway.file, scene.text(WORKERS, { ...change, ...pricedAt({ output: String(OUTPUT_USD) }) }));
    gateway.child.kill("SIGHUP");
  };
  await untilAllServe(gateway);
  writeFileSync(join(holdAt, step.at), "");
  if (step.by === "reload") reload();
  else process.kill(workerPids(gateway).get(1) as number, step.by);
  const { pid } = JSON.parse(await gateway.line(`"held":"${step.at}"`)) as { pid: number };
  await untilStopped(pid);
  if (step.by !== "reload") reload();
  await untilMetric(gateway, "tollgate_config_generation", 2);
  if (!step.mayAdmit) await untilMetric(gateway, "tollgate_config_reloads_total", 1);
  const accepted = metricSum(await metricsPage(gateway), "tollgate_config_reloads_total", "accepted");
  assert.equal(accepted, step.mayAdmit ? 0 : 1, `in force at ${step.at}`);
  process.kill(pid, then);
  await untilMetric(gateway, "tollgate_config_reloads_total", 1);
  if (step.by === "SIGTERM" || then === "SIGKILL") await gone([pid]);
  await untilAllServe(gateway);
  await allPriceAnew(scene, gateway, step);
}

function writeSecrets(secret: (name: string) => string, storeUrl: string): void {
  writeFileSync(secret("store"), storeUrl);
  writeFileSync(secret("admin-token"), "test-admin-token");
  writeFileSync(secret("sealing-key"), "test-sealing-key-of-32-characters-or-more");
}

async function untilMetric(gateway: GatewayProcess, name: string, least: number): Promise<void> {
  while (metricSum(await metricsPage(gateway), name) < least) await aMoment();
}

/**
 * The process reports that it is about to stop itself; a SIGCONT before that would be lost, and it would stay stopped.
 */
async function untilStopped(pid: number): Promise<void> {
  const state = () => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.charAt(0);
  while (state() !== "T") await aMoment();
}

async function allPriceAnew(scene: Scene, gateway: GatewayProcess, { at }: Step): Promise<void> {
  const ids: (string | null)[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const reply = await ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } });
    assert.equal(reply.status, 200, await reply.text());
    ids.push(reply.headers.get("x-request-id"));
  }
  const served = () => lines(gateway).filter(({ msg, request }) => msg === "request" && ids.includes(String(request)));
  while (served().length < REQUESTS) await aMoment();
  assert.equal(new Set(served().map(({ worker }) => worker)).size, WORKERS, "every worker is used");
  // Ten tokens in at 1 US dollar per million, five out at the new price.
  const charges = served().map(({ charged_nano_usd }) => Number(charged_nano_usd));
  assert.deepEqual(charges, Array(REQUESTS).fill(10_000 + 5_000 * OUTPUT_USD), `charged after ${at}`);
}
