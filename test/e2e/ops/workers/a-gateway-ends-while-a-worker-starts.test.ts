/**
 * SIGTERM and SIGINT to the gateway while one of its workers is at each step of its start: all processes end normally.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { gone, untilReadiness, workerPids, workersScene } from "./rig.ts";

const HELD = fileURLToPath(new URL("./held-worker.ts", import.meta.url));
const STEPS = ["hear-start", "say-prepared", "hear-open"];

test("a gateway ends normally while one of two workers is at any step of its start", async (t) => {
  const scene = await workersScene(t);
  const holdAt = join(scene.dir, "hold");
  mkdirSync(holdAt);
  for (const [index, step] of STEPS.entries()) {
    const gateway = await scene.start(2, undefined, { nodeArgs: ["--import", HELD], env: { HOLD_AT: holdAt } });
    const [first, second] = [...workerPids(gateway).values()] as [number, number];
    writeFileSync(join(holdAt, step), "");
    process.kill(first, "SIGKILL");
    const { pid } = JSON.parse(await gateway.line(`"held":"${step}"`)) as { pid: number };
    gateway.child.kill(index % 2 === 0 ? "SIGTERM" : "SIGINT");
    await untilReadiness(`${gateway.adminUrl}/readyz`, ({ reasons }) => reasons.includes("draining"));
    process.kill(pid, "SIGCONT");
    assert.equal(await gateway.stop("SIGCONT"), 0, gateway.output());
    await gone([first, second, pid]);
    assert.doesNotMatch(gateway.output(), /does not end|is killed/, `killed at ${step}`);
  }
  const { holds, inFlight } = await scene.state();
  assert.deepEqual([holds, inFlight], [[], 0]);
});
