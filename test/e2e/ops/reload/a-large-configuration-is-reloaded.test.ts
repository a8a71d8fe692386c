/** A running gateway loads a large configuration in a thread, with the results and messages of a small one. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import test, { type TestContext } from "node:test";
import { type GatewayProcess, PROGRAM, spawnGateway } from "../../../rig/gateway.ts";
import { largeConfig } from "../../../rig/large-config.ts";
import { hasThread } from "../../../rig/threads.ts";

const THREAD = "configuration";
const ENDS = 3;

/** A gateway whose configuration has two hundred models. */
async function largeGateway(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-large-"));
  const text = largeConfig({ dir, models: 200, groups: 5 });
  const gateway = await spawnGateway(text);
  t.after(async () => {
    await gateway.stop("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  });
  return { gateway, text };
}

const pidOf = ({ child }: GatewayProcess) => child.pid as number;

test("a changed large file is in force within its time, as is one after SIGHUP", async (t) => {
  const { gateway, text } = await largeGateway(t);
  const first = gateway.line('"event":"config_reloaded"');
  writeFileSync(gateway.file, `${text}heartbeat: 7s\n`);
  assert.ok(await hasThread(pidOf(gateway), THREAD, first), "a thread loads it");
  const { generation, restart } = JSON.parse(await first) as Record<string, unknown>;
  assert.deepEqual([generation, restart], [2, []]);
  const second = gateway.line('"event":"config_reloaded"', 2);
  writeFileSync(gateway.file, `${text}heartbeat: 8s\n`);
  gateway.child.kill("SIGHUP");
  assert.equal((JSON.parse(await second) as Record<string, unknown>).generation, 3);
  const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  assert.match(page, /^tollgate_config_last_reload_success 1$/m);
  assert.equal(await gateway.stop(), 0);
});

test("a large file with a mistake is refused in the words of `tollgate check`", async (t) => {
  const { gateway, text } = await largeGateway(t);
  for (const [at, broken] of [`${text}hartbeat: 7s\n`, text.replaceAll("weight: 3", "weight: [3")].entries()) {
    const refused = gateway.line('"event":"config_refused"', at + 1);
    writeFileSync(gateway.file, broken);
    gateway.child.kill("SIGHUP");
    assert.ok(await hasThread(pidOf(gateway), THREAD, refused), "a thread loads it");
    const { problems } = JSON.parse(await refused) as { problems: readonly string[] };
    const said = await new Promise<string>((resolve) => {
      execFile(process.execPath, [PROGRAM, "check", "--config", gateway.file], (_, __, err) => resolve(err));
    });
    assert.deepEqual(problems, said.trimEnd().split("\n"));
  }
  assert.equal(await gateway.stop(), 0);
});

test("a process that is told to stop while a thread loads ends in an orderly way", async (t) => {
  for (let i = 0; i < ENDS; i++) {
    const { gateway, text } = await largeGateway(t);
    const reloaded = gateway.line('"event":"config_reloaded"');
    writeFileSync(gateway.file, `${text}heartbeat: 7s\n`);
    gateway.child.kill("SIGHUP");
    assert.ok(await hasThread(pidOf(gateway), THREAD, reloaded), "a thread loads it");
    assert.equal(await gateway.stop("SIGINT"), 0, gateway.output());
    assert.match(gateway.output(), /"event":"stopped".*\n$/, "nothing is printed after that");
  }
});
