/**
 * docs/failure-model.md row B10: the disk of Redis is full (a real one: a tmpfs of 1 MB). MISCONF becomes 503; charges
 * wait and settle later.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { scene, settledState } from "./rig.ts";

/** @returns the folder, or why there is none: only root may mount. */
function mountSmall(): { dir: string } | { why: string } {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-small-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", dir], { stdio: "pipe" });
    return { dir };
  } catch (error) {
    rmSync(dir, { recursive: true });
    return { why: `no small disk can be mounted here: ${String(error).split("\n")[0]}` };
  }
}

const small = mountSmall();

test("if the disk of Redis is full, new requests get 503, running ones end well, and all charges settle when there is room", {
  skip: "why" in small ? small.why : false,
}, async (t) => {
  if ("why" in small) return;
  const { dir } = small;
  t.after(() => {
    execFileSync("umount", ["-l", dir]);
    rmSync(dir, { recursive: true });
  });
  const aof = ["--dir", dir, "--appendonly", "yes", "--appendfsync", "everysec"];
  const s = await scene(t, { redis: { args: [...aof, "--aof-use-rdb-preamble", "no"] } });
  assert.equal(await s.status(), "200");
  await settledState(s, 1);
  s.here.simulator.hold();
  const running = s.status();
  await s.here.simulator.waitFor(2);
  const filler = join(dir, "filler");
  assert.throws(() => writeFileSync(filler, Buffer.alloc(2_000_000)), /ENOSPC/);
  // Redis notices when it next writes its file.
  let refused = "";
  while (!refused.startsWith("-MISCONF")) {
    refused = await s.redis.command("SET", "other", "x".repeat(10_000));
  }
  s.here.simulator.release();
  assert.equal(await running, "200");
  for (let i = 0; i < 6; i++) assert.equal(await s.status(), "503 store_unavailable");
  rmSync(filler);
  await s.closed();
  assert.equal(await s.status(), "200");
  await settledState(s, 3);
});
