// Rules 1, 2 and 3 of docs/usage-forms.md apply to messages as well: a total, thinking separate from the output, other
// names.
import assert from "node:assert/strict";
import test from "node:test";
import { MessageUsage, readUsage } from "../../../../src/convert/messages/usage.ts";
import { totalInput } from "../../../../src/values/tokens/usage.ts";

const FORMS: readonly (readonly [what: string, usage: object, input: number, cached: number, output: number])[] = [
  [
    "thinking inside the output",
    { input_tokens: 10, output_tokens: 50, output_tokens_details: { thinking_tokens: 40 } },
    10,
    0,
    50,
  ],
  [
    "thinking separate from the output",
    { input_tokens: 10, output_tokens: 5, output_tokens_details: { thinking_tokens: 40 } },
    10,
    0,
    45,
  ],
  ["a total above the sum", { input_tokens: 10, output_tokens: 5, total_tokens: 55 }, 10, 0, 45],
  [
    "a total with the cache",
    { input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 5, total_tokens: 105 },
    100,
    90,
    5,
  ],
  [
    "a total without the cache",
    { input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 5, total_tokens: 15 },
    100,
    90,
    5,
  ],
  ["a total with only one other count", { output_tokens: 5, total_tokens: 1_000 }, 0, 0, 5],
  ["a total with a negative count", { input_tokens: 10, output_tokens: -5, total_tokens: 1_000 }, 10, 0, 0],
  [
    "the names of chat",
    { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 90 } },
    100,
    90,
    5,
  ],
  [
    "the names of chat, with more cached than there is input",
    { prompt_tokens: 50, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 90 } },
    50,
    50,
    5,
  ],
  ["the names of chat, for the output alone", { completion_tokens: 5 }, 0, 0, 5],
  [
    "the names of chat next to zeros",
    { input_tokens: 0, output_tokens: 0, prompt_tokens: 100, completion_tokens: 5 },
    100,
    0,
    5,
  ],
  [
    "the names of both protocols",
    { input_tokens: 10, output_tokens: 5, prompt_tokens: 100, completion_tokens: 50 },
    10,
    0,
    5,
  ],
];

for (const [what, said, input, cached, output] of FORMS) {
  test(`${what}: all input and output is counted`, () => {
    const usage = readUsage(said);
    assert.ok(usage);
    assert.deepEqual([totalInput(usage), usage.cachedInput, usage.output], [input, cached, output]);
  });
}

test("a last count of 0 output tokens is final after a first count of 0, and not after a first count of 1", () => {
  const forgotten = new MessageUsage();
  forgotten.begin({ input_tokens: 10, output_tokens: 1 });
  forgotten.count({ output_tokens: 0 });
  assert.equal(forgotten.final, false);
  const empty = new MessageUsage();
  empty.begin({ input_tokens: 10, output_tokens: 0 });
  empty.count({ output_tokens: 0 });
  assert.equal(empty.final, true);
});

test("Bedrock's own count is used only if the protocol's is missing", () => {
  const metrics = { "amazon-bedrock-invocationMetrics": { inputTokenCount: 8, outputTokenCount: 3 } };
  const counted = new MessageUsage();
  counted.count({ input_tokens: 10, output_tokens: 5 });
  counted.countLast(metrics);
  assert.deepEqual([counted.usage?.input, counted.usage?.output], [10, 5]);
  const uncounted = new MessageUsage();
  uncounted.begin({ input_tokens: 8, output_tokens: 1 });
  uncounted.countLast(metrics);
  assert.deepEqual([uncounted.usage?.input, uncounted.usage?.output, uncounted.final], [8, 3, true]);
});
