/**
 * docs/translation-rules.md rule 36: numbers in members that are only passed through keep their digits, however the
 * members are written.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { parseWithDigits, withDigits } from "../../../src/convert/json-exact.ts";

const WIDE = '{"id":9007199254740993,"share":0.12345678901234567891}';

const HOLDERS = [
  ...["input_schema", "parameters", "schema", "output_schema", "arguments", "action", "operation"].map(
    (name) => `{"${name}":${WIDE}}`,
  ),
  `{"input_examples":[${WIDE}]}`,
  ...["tool_use", "server_tool_use", "mcp_tool_use"].map((type) => `{"type":"${type}","input":${WIDE}}`),
];

for (const text of HOLDERS) {
  test(`the digits stay in ${text.replace(WIDE, "…")}`, () => {
    assert.equal(JSON.stringify(withDigits(JSON.parse(text), () => text)), text);
  });
}

test("blanks around the colon of a tool's input lose no digits", () => {
  const text = `{"content_block": {"type": "tool_use", "input" : ${WIDE}}}`;
  assert.match(JSON.stringify(parseWithDigits(text)), /:9007199254740993,/);
});

test("in a reply of more than a megabyte, which no model writes, numbers are doubles", () => {
  const text = `{"content_block":{"type":"tool_use","input":${WIDE}},"text":"${"x".repeat(1024 * 1024)}"}`;
  const { content_block } = parseWithDigits(text) as { content_block: { input: { id: unknown } } };
  assert.equal(content_block.input.id, Number("9007199254740993"));
});
