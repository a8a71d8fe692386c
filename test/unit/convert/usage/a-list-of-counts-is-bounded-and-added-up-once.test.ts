/**
 * A list of counts can be as long as an upstream makes it. A list longer than any server's is ignored, and others are
 * added up once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { CHOICES_MAX, ChatStreamUsage } from "../../../../src/convert/chat/usage.ts";
import { ITERATIONS_MAX, MessageUsage, readUsage } from "../../../../src/convert/messages/usage.ts";

const iterations = (length: number) => Array(length).fill({ type: "message", input_tokens: 3, output_tokens: 2 });

test("messages: iterations are added up to the limit, and a longer list is ignored", () => {
  const counts = (length: number) => {
    const usage = readUsage({ input_tokens: 7, output_tokens: 5, iterations: iterations(length) });
    return [usage?.input, usage?.output, usage?.longestInput];
  };
  assert.deepEqual(counts(ITERATIONS_MAX), [3 * ITERATIONS_MAX, 2 * ITERATIONS_MAX, 3]);
  assert.deepEqual(counts(ITERATIONS_MAX + 1), [7, 5, undefined]);
  assert.equal(readUsage({ iterations: iterations(ITERATIONS_MAX + 1) }), undefined);
});

test("messages: a list that is too long leaves the earlier one in use", () => {
  const reading = new MessageUsage();
  reading.begin({ input_tokens: 7, output_tokens: 1, iterations: iterations(4) });
  reading.count({ output_tokens: 5, iterations: iterations(ITERATIONS_MAX + 1) });
  assert.deepEqual([reading.usage?.input, reading.usage?.output], [12, 8]);
  reading.count({ output_tokens: 5, iterations: iterations(5) });
  assert.deepEqual([reading.usage?.input, reading.usage?.output], [15, 10]);
});

test("messages: iterations are added up once, however often the usage is read and whatever is counted later", () => {
  let reads = 0;
  const entry = {
    type: "message",
    output_tokens: 2,
    get input_tokens() {
      reads++;
      return 3;
    },
  };
  const reading = new MessageUsage();
  reading.count({ input_tokens: 7, output_tokens: 5, iterations: [entry, entry] });
  assert.equal(reading.usage, reading.usage);
  const first = reads;
  assert.ok(first > 0);
  for (let output = 6; output < 9; output++) {
    reading.count({ output_tokens: output });
    assert.deepEqual([reading.usage?.input, reading.usage?.output], [7, output]);
  }
  assert.equal(reads, first);
});

test("chat: choices are added up once, until another count of one of them arrives", () => {
  const choice = (index: number, usage?: object) => ({ index, delta: {}, usage });
  const count = { prompt_tokens: 9, completion_tokens: 2 };
  const reading = new ChatStreamUsage(CHOICES_MAX);
  reading.see({ choices: Array.from({ length: CHOICES_MAX }, (_, index) => choice(index, count)) }, false);
  const { usage } = reading;
  assert.equal(usage?.output, 2 * CHOICES_MAX);
  reading.see({ choices: [choice(0)] }, true);
  assert.equal(reading.usage, usage);
  reading.see({ choices: [choice(0, { ...count, completion_tokens: 3 })] }, false);
  assert.equal(reading.usage?.output, 2 * CHOICES_MAX + 1);
});
