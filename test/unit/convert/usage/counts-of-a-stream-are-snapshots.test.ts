/**
 * Rules 5, 7 and 8 of docs/usage-forms.md, in cases that no row of its table shows: how early and incomplete counts of
 * a stream are used.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { CHOICES_MAX, ChatStreamUsage, readUsage as readChat } from "../../../../src/convert/chat/usage.ts";
import { MessageUsage, readUsage as readMessages } from "../../../../src/convert/messages/usage.ts";
import { billedUsage, stepInput, type Usage } from "../../../../src/values/tokens/usage.ts";

function chunk(content: string | undefined, usage?: object, reason: string | null = null): Record<string, unknown> {
  return { choices: [{ index: 0, delta: content === undefined ? {} : { content }, finish_reason: reason }], usage };
}

function kinds(usage: Usage | undefined): readonly (number | undefined)[] {
  return [usage?.input, usage?.cachedInput, usage?.output];
}

test("chat: output after the last count makes that count a snapshot, however the stream ends", () => {
  const reading = new ChatStreamUsage(1);
  reading.see(chunk("one", { prompt_tokens: 70, completion_tokens: 5, total_tokens: 75 }), true);
  reading.see(chunk(" and many more words"), true);
  reading.see(chunk(undefined, undefined, "stop"), false);
  reading.end();
  assert.equal(reading.final, false);
  const evidence = { final: reading.final, inputEstimate: 9, outputEstimate: 1_000 };
  const { usage, estimated } = billedUsage(reading.usage, evidence);
  assert.deepEqual([...kinds(usage), estimated], [70, 0, 1_000, true]);
});

test("chat: a count after the last content is final, even without a terminal marker", () => {
  const reading = new ChatStreamUsage(1);
  reading.see(chunk("one"), true);
  reading.see(chunk(undefined, { prompt_tokens: 70, completion_tokens: 5 }, "stop"), false);
  assert.equal(reading.final, true);
});

test("chat: a count without the input or the output keeps that part of the earlier count", () => {
  const first = {
    prompt_tokens: 70,
    completion_tokens: 5,
    total_tokens: 75,
    prompt_tokens_details: { cached_tokens: 30 },
  };
  for (const [later, expected] of [
    [{ prompt_tokens: 0, completion_tokens: 9, total_tokens: 9 }, [40, 30, 9]],
    [{ completion_tokens: 9 }, [40, 30, 9]],
    [{ prompt_tokens: 70, completion_tokens: 0, total_tokens: 70 }, [70, 0, 5]],
    [{ prompt_tokens: 70 }, [70, 0, 5]],
    [{ total_tokens: 100 }, [40, 30, 30]],
    [{ total_tokens: 50 }, [40, 30, 5]],
    [{ prompt_tokens: 60, completion_tokens: 4, total_tokens: 64 }, [60, 0, 4]],
  ] as const) {
    const reading = new ChatStreamUsage(1);
    reading.see(chunk("one", first), true);
    reading.see({ choices: [], usage: later }, false);
    assert.deepEqual(kinds(reading.usage), expected, JSON.stringify(later));
  }
});

/** A count of 70 input tokens by default, and the given output tokens. */
const count = (output: number, input = 70) => ({ prompt_tokens: input, completion_tokens: output });
const words = (index: number, more: object = {}) => ({
  index,
  delta: { content: "word" },
  finish_reason: null,
  ...more,
});
/** A chunk of one of several choices, with a count next to the choices. */
const beside = (index: number, usage: object) => ({ choices: [words(index)], usage });

test("chat, several choices: counts of choices after a whole count replace it, and the next whole count replaces them", () => {
  const reading = new ChatStreamUsage(2);
  reading.see({ choices: [], usage: count(5) }, false);
  assert.deepEqual(kinds(reading.usage), [70, 0, 5]);
  reading.see(beside(0, count(6)), true);
  reading.see(beside(1, count(4)), true);
  assert.deepEqual(kinds(reading.usage), [70, 0, 10]);
  reading.see({ choices: [], usage: count(8) }, false);
  assert.deepEqual(kinds(reading.usage), [70, 0, 8]);
  // A choice whose count restarts does not lower the whole.
  reading.see(beside(0, count(1)), true);
  assert.deepEqual(kinds(reading.usage), [70, 0, 8]);
});

test("chat, several choices: counts of choices below the whole count before them do not replace it", () => {
  const reading = new ChatStreamUsage(2);
  reading.see({ choices: [], usage: count(20) }, false);
  reading.see(beside(0, count(6)), true);
  reading.see(beside(1, count(4)), true);
  assert.deepEqual(kinds(reading.usage), [70, 0, 20]);
});

test("chat, several choices: one counter for all may repeat its value if nothing was produced, and may omit the input", () => {
  const reading = new ChatStreamUsage(2);
  reading.see(beside(0, count(4)), true);
  reading.see(beside(1, count(6, 0)), true);
  reading.see(beside(0, count(6, 0)), false);
  assert.deepEqual(kinds(reading.usage), [70, 0, 6]);
});

test("chat, several choices: a count inside a choice belongs to that choice, whatever is next to the others", () => {
  const reading = new ChatStreamUsage(2);
  reading.see(beside(0, count(4)), true);
  reading.see({ choices: [words(1, { usage: count(6) })] }, true);
  assert.deepEqual(kinds(reading.usage), [70, 0, 10]);
  reading.see({ choices: [words(0, { usage: count(4, 0) }), words(1, { usage: count(9, 0) })] }, true);
  assert.deepEqual(kinds(reading.usage), [70, 0, 13], "a count without input keeps the earlier input");
});

test("chat, several choices: a count next to all choices is that of the whole reply", () => {
  const reading = new ChatStreamUsage(2);
  reading.see({ choices: [words(0), words(1)], usage: count(12) }, true);
  reading.see(beside(0, count(3)), true);
  assert.deepEqual(kinds(reading.usage), [70, 0, 12]);
});

test("chat, several choices: the end makes the counts final even if a choice never came, and only CHOICES_MAX choices are counted separately", () => {
  const reading = new ChatStreamUsage(CHOICES_MAX);
  for (let index = 0; index < 2 * CHOICES_MAX; index++) {
    reading.see({ choices: [words(index % (CHOICES_MAX + 9), { usage: count(2) })] }, index < CHOICES_MAX);
  }
  assert.deepEqual([reading.usage?.output, reading.final], [2 * CHOICES_MAX, false]);
  reading.end();
  assert.equal(reading.final, true);
});

test("chat, several choices: a count of one choice is not final for another that has produced output", () => {
  const reading = new ChatStreamUsage(2);
  reading.see({ choices: [words(0)] }, true);
  reading.see({ choices: [words(1)] }, true);
  const ended = { index: 0, delta: {}, finish_reason: "stop" };
  reading.see({ choices: [{ ...ended, usage: count(6) }] }, false);
  reading.see({ choices: [{ ...ended, index: 1 }] }, false);
  reading.end();
  assert.equal(reading.final, false);
  reading.see({ choices: [{ ...ended, index: 1, usage: count(4) }] }, false);
  assert.deepEqual([...kinds(reading.usage), reading.final], [70, 0, 10, true]);
});

test("chat: the count of a failure is final, and without one the count before the failure is a snapshot", () => {
  const error = { message: "overloaded" };
  for (const [failure, expected] of [
    [{ error, usage: count(9) }, [70, 0, 9, true]],
    [{ error }, [70, 0, 5, false]],
  ] as const) {
    const reading = new ChatStreamUsage(1);
    reading.see(chunk("one", count(5)), true);
    reading.seeFailure(failure, false);
    assert.deepEqual([...kinds(reading.usage), reading.final], expected);
  }
});

test("chat: a total alone is split by the estimate of the input, and the rest is output", () => {
  const counted = readChat({ total_tokens: 5_000 });
  const evidence = { final: true, inputEstimate: 1_200, outputEstimate: 10 };
  assert.deepEqual([...kinds(billedUsage(counted, evidence).usage)], [1_200, 0, 3_800]);
  assert.equal(billedUsage(counted, evidence).estimated, true);
  const small = billedUsage(readChat({ total_tokens: 800 }), evidence).usage;
  assert.deepEqual(kinds(small), [800, 0, 0]);
});

test("messages: output after a count makes that count a snapshot", () => {
  const reading = new MessageUsage();
  reading.begin({ input_tokens: 70, output_tokens: 1 });
  assert.equal(reading.final, false);
  reading.count({ output_tokens: 5 });
  assert.equal(reading.final, true);
  reading.produced();
  assert.equal(reading.final, false);
  reading.count({ output_tokens: 9 });
  assert.deepEqual([...kinds(reading.usage), reading.final], [70, 0, 9, true]);
});

test("messages: the longest iteration decides the price step, whatever its position", () => {
  const iteration = (tokens: number) => ({ type: "message", input_tokens: tokens, output_tokens: 1 });
  for (const order of [
    [150_000, 90_000],
    [90_000, 150_000],
  ]) {
    const usage = readMessages({ input_tokens: 90_000, output_tokens: 2, iterations: order.map(iteration) });
    assert.ok(usage);
    assert.deepEqual([usage.input, stepInput(usage)], [240_000, 150_000]);
  }
});

test("messages: an answering iteration that is not listed also counts for the price step", () => {
  const listed = { type: "compaction", input_tokens: 90_000, output_tokens: 1 };
  for (const [answering, longest] of [
    [150_000, 150_000],
    [40_000, 90_000],
  ] as const) {
    const usage = readMessages({ input_tokens: answering, output_tokens: 2, iterations: [listed] });
    assert.ok(usage);
    assert.deepEqual([usage.input, stepInput(usage)], [90_000 + answering, longest]);
  }
});

test("messages: a declined attempt is free only if it reports no output, and is billed if it does not report its output", () => {
  const answer = { type: "fallback_message", input_tokens: 10, output_tokens: 5 };
  const declined = (entry: object) =>
    kinds(readMessages({ input_tokens: 10, output_tokens: 5, iterations: [{ type: "message", ...entry }, answer] }));
  assert.deepEqual(declined({ input_tokens: 100, output_tokens: 0 }), [10, 0, 5]);
  assert.deepEqual(declined({ input_tokens: 100 }), [110, 0, 5]);
});
