/** `npm test` on two small files: progress after each, what reads the traces, the slowest, the counts last. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { promisify } from "node:util";

const FILES = ["test/unit/values/amounts-as-people-type-them.test.ts", "test/unit/values/lookups-are-exact.test.ts"];

test("a run shows how far it is, and ends with the slowest files and the counts", async () => {
  // Inside of a run Node passes over another one.
  const { NODE_TEST_CONTEXT: _inner, ...env } = process.env;
  const ran = await promisify(execFile)(process.execPath, ["test/run.ts", ...FILES], { env, encoding: "utf8" });
  const lines = ran.stdout.trimEnd().split("\n");
  assert.match(
    lines[0] ?? "",
    /^2 files\. Traces are read by (a receiver that decodes OTLP|the OpenTelemetry Collector) /,
  );
  const done = lines.filter((line) => /^\[[12] of 2\] test\/unit\/\S+\.test\.ts: \d+\.\d s$/.test(line));
  assert.equal(done.length, 2, ran.stdout);
  const at = lines.indexOf("The slowest files:");
  const slowest = lines.slice(at + 1, at + 3).map((line) => /^ +(\d+\.\d) s {2}(\S+)$/.exec(line));
  assert.deepEqual(slowest.map((found) => found?.[2]).sort(), [...FILES].sort());
  assert.ok(Number(slowest[0]?.[1]) >= Number(slowest[1]?.[1]));
  assert.match(lines.at(-1) ?? "", /^[1-9]\d* passed, 0 failed$/);
});
