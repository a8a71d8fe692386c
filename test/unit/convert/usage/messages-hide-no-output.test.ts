// Rules 1, 2 and 3 of docs/usage-forms.md hold for messages as well: a total, thinking beside the output, other names.
import assert from "node:assert/strict";
import test from "node:test";
import { MessageUsage, readUsage } from "../../../../src/convert/messages/usage.ts";
import { totalInput } from "../../../../src/values/tokens/usage.ts";

const FORMS: readonly (readonly [what: string, usage: object, input: number, cached: number, output: number])[] = [
  [
    "thinking inside",
    { input_tokens: 10, output_tokens: 50, output_tokens_details: { thinking_tokens: 40 } },
    10,
    0,
    50,
  ],
  [
    "thinking beside",
    { input_tokens: 10, output_tokens: 5, output_tokens_details: { thinking_tokens: 40 } },
    10,
    0,
    45,
  ],
  ["a total with more", { input_tokens: 10, output_tokens: 5, total_tokens: 55 }, 10, 0, 45],
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
  ["a total beside half a count", { output_tokens: 5, total_tokens: 1_000 }, 0, 0, 5],
  ["a total beside a lie", { input_tokens: 10, output_tokens: -5, total_tokens: 1_000 }, 10, 0, 0],
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
  ["the names of chat, of the output alone", { completion_tokens: 5 }, 0, 0, 5],
  ["the same beside zeros", { input_tokens: 0, output_tokens: 0, prompt_tokens: 100, completion_tokens: 5 }, 100, 0, 5],
  ["both", { input_tokens: 10, output_tokens: 5, prompt_tokens: 100, completion_tokens: 50 }, 10, 0, 5],
];

for (const [what, said, input, cached, output] of FORMS) {
  test(what, () => {
    const usage = readUsage(said);
    assert.ok(usage);
    assert.deepEqual([totalInput(usage), usage.cachedInput, usage.output], [input, cached, output]);
  });
}

test("an end of 0 behind a beginning of 1 is no last word, an end of 0 behind none is", () => {
  const forgotten = new MessageUsage();
  forgotten.begin({ input_tokens: 10, output_tokens: 1 });
  forgotten.count({ output_tokens: 0 });
  assert.equal(forgotten.final, false);
  const empty = new MessageUsage();
  empty.begin({ input_tokens: 10, output_tokens: 0 });
  empty.count({ output_tokens: 0 });
  assert.equal(empty.final, true);
});

test("Bedrock's own count stands in for the protocol's, and does not replace it", () => {
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
