/** `admin: unix:PATH` without a slash at the start of the path is below the working folder, as for `--admin`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { BARE_ENV, PROGRAM, spawnGateway, testConfig } from "../../../rig/gateway.ts";

test("a gateway listens on a relative path, and commands find it there", async (t) => {
  const text = testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir: "." }, { admin: "unix:admin.sock" });
  const gateway = await spawnGateway(text);
  t.after(() => gateway.stop());
  const cwd = dirname(gateway.file);
  assert.ok(statSync(join(cwd, "admin.sock")).isSocket());
  const argv = [PROGRAM, "health", "--admin", "unix:admin.sock"];
  const { stdout } = await promisify(execFile)(process.execPath, argv, { cwd, env: BARE_ENV });
  assert.equal(stdout, "alive\n");
});
