/**
 * An upstream's key is sent in a header. A key that was pasted with a line end, or from a file with two lines, could not be
 * sent with any request, so it is refused when the file is loaded, and it is not shown.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig } from "../../../../src/config/config.ts";
import { LEAST } from "./least.ts";

const problemsWith = (key: string) => {
  const text = LEAST.replace('/v1"}', '/v1", api_key: "file:/run/key"}');
  const loaded = loadConfig({ text, env: {}, readFile: () => key });
  return "problems" in loaded ? loaded.problems.map(formatProblem) : [];
};

test("a key of visible ASCII in one line is accepted, and one with a line end, a blank at an end or other signs is not", () => {
  for (const key of ["sk-upstream", "sk-upstream\n", "two words"]) assert.deepEqual(problemsWith(key), [], key);
  for (const key of ["sk-one\nsk-two", "sk-one\n\n", " sk-one", "sk-ключ", "sk-\tone"]) {
    const [problem, ...more] = problemsWith(key);
    assert.match(problem ?? "", /upstreams\.east\.api_key: .*must be visible ASCII in one line/, JSON.stringify(key));
    assert.deepEqual(more, []);
    assert.ok(!problem?.includes("sk-"), "the key is not shown");
  }
});
