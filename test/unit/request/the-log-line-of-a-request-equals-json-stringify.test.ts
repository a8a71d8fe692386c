/** The log line of a request is put together without JSON.stringify, and read by programs. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { lineText } from "../../../src/request/record/line.ts";

const text = fc.string({ unit: "binary" });
/** Fixed words, ids and amounts. */
const word = fc.stringMatching(/^[a-z0-9_]{0,24}$/);
const number = fc.oneof(fc.nat(), fc.double());
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const LINE = fc.record(
  {
    request: word,
    trace: maybe(word),
    front_request: maybe(word),
    protocol: word,
    endpoint: maybe(word),
    status: number,
    cause: word,
    model: maybe(text),
    group: maybe(text),
    account_id: maybe(word),
    key_id: maybe(word),
    upstream: maybe(text),
    answered_by: maybe(text),
    attempts: number,
    attempt_reasons: fc.array(text),
    stream_end: maybe(word),
    hold_extensions: maybe(number),
    first_token_ms: maybe(number),
    duration_ms: number,
    input_tokens: maybe(number),
    output_tokens: maybe(number),
    counted: maybe(word),
    unpaid_tool_calls: fc.array(text),
    charged_nano_usd: maybe(word),
  },
  { noNullPrototype: true },
);

test("property: a line equals the output of JSON.stringify, character by character and in its order", () => {
  fc.assert(
    fc.property(LINE, (line) => {
      assert.equal(`{${lineText(line).slice(1)}}`, JSON.stringify(line));
    }),
    { numRuns: 2_000, seed: 26 },
  );
});

test("characters that need escapes are escaped", () => {
  const plain = { request: "r", protocol: "chat", status: 200, cause: "none", attempts: 1, duration_ms: 1 };
  const nobody = { group: undefined, account_id: undefined, key_id: undefined };
  const none = { trace: undefined, front_request: undefined, endpoint: undefined, ...nobody, answered_by: undefined };
  const counts = { hold_extensions: undefined, first_token_ms: undefined, input_tokens: undefined };
  const rest = { stream_end: undefined, output_tokens: undefined, counted: undefined, charged_nano_usd: undefined };
  const lists = { attempt_reasons: ['a "b"\n'], unpaid_tool_calls: [] };
  const line = { ...plain, ...none, ...counts, ...rest, ...lists, model: 'a"\n\u2028\ud800\\', upstream: "\u00e9" };
  assert.deepEqual(JSON.parse(`{${lineText(line).slice(1)}}`), JSON.parse(JSON.stringify(line)));
});
