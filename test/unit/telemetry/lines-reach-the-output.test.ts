/** Lines of one turn are written in one piece: at its end, and where the process ends before. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import test from "node:test";
import { promisify } from "node:util";

const LOG = new URL("../../../src/telemetry/log.ts", import.meta.url).href;

/** A program that logs a line, and then does this. */
const program = (then: string) => [
  "--input-type=module",
  "--eval",
  `const { createLog } = await import(${JSON.stringify(LOG)}); createLog({ level: "info" }).info({}, "said"); ${then}`,
];

test("a line is there while its process goes on", async (t) => {
  const child = spawn(process.execPath, program("setInterval(() => {}, 1_000);"), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const [chunk] = await once(child.stdout, "data");
  assert.equal(JSON.parse(String(chunk)).msg, "said");
});

test("a line is there where its process has ended at once", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, program("process.exit(0);"));
  assert.equal(JSON.parse(stdout).msg, "said");
});
