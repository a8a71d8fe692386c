/**
 * `npm test` on small files: it prints the progress after each file, what reads the traces, the slowest files and last
 * the counts, and no failure is lost.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const FILES = ["test/unit/values/amounts-as-people-type-them.test.ts", "test/unit/values/lookups-are-exact.test.ts"];

function runOf(files: readonly string[]) {
  // Node skips a test run inside another one.
  const { NODE_TEST_CONTEXT: _inner, ...env } = process.env;
  return spawnSync(process.execPath, ["test/run.ts", ...files], { env, encoding: "utf8" });
}

test("a run prints its progress, and ends with the slowest files and the counts", () => {
  const ran = runOf(FILES);
  assert.equal(ran.status, 0, ran.stderr);
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

test("a file without a test, a process that exits with status 0 too early, and a hook that fails each make the run fail", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-run-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const imports = 'import test, { after, describe } from "node:test";\n';
  const written = (name: string, code: string) => {
    const file = join(dir, `${name}.test.ts`);
    writeFileSync(file, imports + code);
    return file;
  };
  const empty = written("empty", "");
  const leaves = written("leaves", 'test("leaves", () => process.exit(0));\ntest("is lost", () => { throw 1; });\n');
  const hook = written("hook", 'after(() => { throw new Error("in a hook"); });\ntest("good", () => {});\n');
  const later = written("later", 'describe.skip("all of it", () => {});\ntest.todo("some day");\n');
  const ran = runOf([...FILES, empty, leaves, hook, later]);
  assert.equal(ran.status, 1);
  assert.deepEqual(
    ran.stderr.split("\n").filter((line) => line.includes(dir)),
    [`${empty} has no test.`, `${leaves} was not run to its end.`],
  );
  assert.match(ran.stdout, /\n2 skipped\n {2}all of it: true\n {2}some day: true\n/);
  const failures = ran.stdout.split("\nFailed:\n")[1]?.trimEnd().split("\n") ?? [];
  assert.deepEqual(failures.slice(0, -2).sort(), [
    `  ${empty} has no test.`,
    `  ${hook}: ${hook}: in a hook`,
    `  ${leaves} was not run to its end.`,
  ]);
  assert.match(ran.stdout, /\n[1-9]\d* passed, 3 failed\n$/);
});
