/**
 * `tollgate serve > tollgate.log` in the configuration's folder: every log line is a file event there, and a changed
 * configuration is still noticed.
 */
import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { spawnGateway, testConfig } from "../../../rig/gateway.ts";

const LINE_EVERY_MS = 5;

test("a changed file is reloaded while a log in the same folder is written all the time", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-busy-"));
  const text = testConfig({ upstreamUrl: "http://127.0.0.1:1", dir });
  const gateway = await spawnGateway(text);
  const log = join(dirname(gateway.file), "tollgate.log");
  const writing = setInterval(() => appendFileSync(log, "a line\n"), LINE_EVERY_MS);
  t.after(async () => {
    clearInterval(writing);
    await gateway.stop("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  });
  writeFileSync(gateway.file, `${text}heartbeat: 7s\n`);
  const { generation, restart } = JSON.parse(await gateway.line("configuration reloaded")) as Record<string, unknown>;
  assert.deepEqual([generation, restart], [2, []]);
});
