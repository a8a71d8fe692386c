/** The systemd unit limits the threads of all processes together: the parent and up to 64 workers. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { LIMITS } from "../../../../src/config/defaults.ts";
import { spawnGateway, testConfig } from "../../../rig/gateway.ts";

test("TasksMax is above the threads of a parent and the most workers", async () => {
  const limit = Number(/^TasksMax=(\d+)$/m.exec(readFileSync("deploy/tollgate.service", "utf8"))?.[1]);
  const dir = mkdtempSync(join(tmpdir(), "tollgate-tasks-"));
  const gateway = await spawnGateway(testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir }));
  try {
    const threads = readdirSync(`/proc/${gateway.child.pid}/task`).length;
    assert.ok(threads * (LIMITS.workersMax + 1) < limit, `${threads} threads in each process`);
  } finally {
    await gateway.stop("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
});
