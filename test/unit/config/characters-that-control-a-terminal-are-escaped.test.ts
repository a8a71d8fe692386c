/** docs/failure-model.md row 77: a value of the file that a message repeats cannot break a line or reverse it. */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig } from "../../../src/config/config.ts";

const UNSEEN = "\u2028\u2029\u202e\u2066\u200b\u061c\u0085\u009b\ufeff";
const ESCAPED = "\\u2028\\u2029\\u202e\\u2066\\u200b\\u061c\\u0085\\u009b\\ufeff";

test("characters that end a line, reverse it or cannot be seen are escaped in the problems of a configuration", () => {
  const refused = loadConfig({
    text: `
default_plan: "a${UNSEEN}b"
admin_token: "file:/run/c${UNSEEN}d"
upstreams: {east: {protocol: "e${UNSEEN}f", base_url: "https://m.example"}}
plans: {free: {}}
`,
    env: {},
    readFile: () => assert.fail("there is no such file"),
  });
  assert.ok("problems" in refused);
  const lines = refused.problems.map(formatProblem);
  for (const value of [`a${ESCAPED}b`, `/run/c${ESCAPED}d`, `e${ESCAPED}f`])
    assert.ok(
      lines.some((line) => line.includes(value)),
      lines.join("\n"),
    );
  for (const line of lines) assert.doesNotMatch(line, /\p{C}|\p{Zl}|\p{Zp}/u);
});
