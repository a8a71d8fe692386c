/** A mistyped option of `npm test`, `npm run bench` and the like shows the form of the command, and no stack. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import process from "node:process";
import test from "node:test";

const ran = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { status, stdout, stderr };
};

test("an option that a program does not have is named, with what it has", () => {
  const { status, stdout, stderr } = ran("bench/streams.ts", "--stream", "5");
  assert.equal(status, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /^Unknown option '--stream'.*\n\n`node bench\/streams.ts`: .*`--streams N`/s);
  assert.doesNotMatch(stderr, / at .*\.ts:\d| \*/);
});

test("--help shows the comment at the head of a program, or the usage that it gives", () => {
  assert.match(ran("bench/run.ts", "--help").stdout, /^`npm run bench`: [\s\S]*node bench\/run\.ts \[--rounds N\]/);
  assert.match(ran("test/endurance/chaos/run.ts", "--help").stdout, /^npm run chaos -- \[options\]\n {2}--store FORM/);
  assert.equal(ran("bench/start.ts", "--help").status, 0);
});

test("a folder of tests that does not exist is named", () => {
  assert.deepEqual(ran("test/run.ts", "test/nowhere"), {
    status: 2,
    stdout: "",
    stderr: "There is no file or folder test/nowhere.\n",
  });
});

test("all programs read their options in this way", () => {
  const own = globSync("{bench,test}/**/*.ts").filter((file) =>
    /import .*\bparseArgs\b/.test(readFileSync(file, "utf8")),
  );
  assert.deepEqual(own, ["test/rig/program-options.ts"]);
});
