import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { text } from "node:stream/consumers";
import test from "node:test";
import { BARE_ENV, PROGRAM } from "../../../rig/gateway.ts";

/** Runs a command whose standard output goes to `stdout`. */
async function run(stdout: number | "pipe", ...argv: string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...argv], { stdio: ["ignore", stdout, "pipe"], env: BARE_ENV });
  // A reader that has what it wants, such as `head`.
  child.stdout?.destroy();
  const [err, [status]] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, "exit")]);
  return { status, err };
}

test("if the output does not fit on the disk, a command names the reason in one line and its exit status is 1", async () => {
  const full = openSync("/dev/full", "w");
  try {
    for (const command of ["man", "schema", "--version"]) {
      const ran = await run(full, command);
      assert.deepEqual(ran, { status: 1, err: "tollgate: the output cannot be written (ENOSPC)\n" }, command);
    }
  } finally {
    closeSync(full);
  }
});

test("if the reader of a pipe has gone, a command ends without an error", async () => {
  assert.deepEqual(await run("pipe", "schema"), { status: 0, err: "" });
});
