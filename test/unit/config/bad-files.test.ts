/**
 * docs/failure-model.md row 84, and every other mistake in a configuration: each is refused, and the message names the
 * key.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { formatProblem, loadConfig, type Problem } from "../../../src/config/config.ts";

// One bad file per promised message. Its first line is the expectation: `# expects: <line>:<key>: <part of the
// message>`.
const folder = new URL("./bad/", import.meta.url);
const files = readdirSync(folder)
  .filter((file) => file.endsWith(".yaml"))
  .sort();

function problemsOf(file: string, text: string): readonly Problem[] {
  const loaded = loadConfig({ file, text, env: { EMPTY: "" } });
  return "problems" in loaded ? loaded.problems : [];
}

test("there are bad files", () => assert.ok(files.length > 100));

for (const file of files) {
  test(`refused: ${file}`, () => {
    const text = readFileSync(new URL(file, folder), "utf8");
    const expected = /^# expects: ([0-9]+):([^:]*(?::[^: ][^:]*)*): (.+)$/.exec(text.slice(0, text.indexOf("\n")));
    assert.ok(expected, "the first line says what is expected");
    const [, line, key, message] = expected as unknown as [string, string, string, string];
    const problems = problemsOf(file, text);
    const fits = problems.some(
      (problem) => problem.line === Number(line) && problem.key === key && problem.message.includes(message),
    );
    assert.ok(fits, `expected ${line}:${key}: ${message}\ngot\n${problems.map(formatProblem).join("\n")}`);
    assert.equal(problems.length, 1, problems.map(formatProblem).join("\n"));
    assert.ok(!problems.some((problem) => formatProblem(problem).includes("hunter2")), "no secret is printed");
  });
}
