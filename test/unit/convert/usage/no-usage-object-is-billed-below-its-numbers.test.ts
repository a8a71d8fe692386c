/**
 * Properties of reading usage, for anything that a server writes: no number is billed below its value, all together are
 * not billed above their sum, and the result contains only valid numbers of tokens.
 *
 * A number bills at least this much, which is the cheapest reading of all numbers together: all input is at least the
 * input count, all output at least the output count and the reasoning, and both together at least the total. At most
 * what is called cached has the price of cached input, and at most what is called written has the price of a write.
 * This holds for any prices.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { ChatStreamUsage, readWholeUsage as readChat } from "../../../../src/convert/chat/usage.ts";
import { readUsage as readMessages } from "../../../../src/convert/messages/usage.ts";
import { readUsage as readResponses } from "../../../../src/convert/responses/usage.ts";
import { NANO_USD_MAX } from "../../../../src/values/money.ts";
import { charge, MULTIPLIER_ONE } from "../../../../src/values/price.ts";
import { billedUsage, TOKEN_COUNT_MAX, totalInput, type Usage } from "../../../../src/values/tokens/usage.ts";
import { priceOf } from "../../values/prices.ts";

const PRICE = priceOf("3 0.3 3.75 6 15", { tools: new Map([["web_search", 10_000_000n]]) });
const EVIDENCE = { final: true, inputEstimate: 1_000, outputEstimate: 100 };

const count = fc.oneof(fc.nat(10), fc.nat(5_000), fc.nat(400_000));
const maybe = fc.option(count, { nil: undefined });

/** What an OpenAI-compatible server reports, under neutral names. */
const said = fc.record({
  input: maybe,
  output: maybe,
  total: fc.option(fc.oneof(count, fc.constant("sum" as const), fc.constant("sum+reasoning" as const)), {
    nil: undefined,
  }),
  cached: maybe,
  written: maybe,
  written1h: maybe,
  reasoning: maybe,
});
type Said = typeof said extends fc.Arbitrary<infer T> ? T : never;

function totalOf({ input = 0, output = 0, reasoning = 0, total }: Said): number | undefined {
  if (total === "sum") return input + output;
  return total === "sum+reasoning" ? input + output + reasoning : total;
}

const chatUsage = (one: Said, names: number): object => ({
  prompt_tokens: one.input,
  completion_tokens: one.output,
  total_tokens: totalOf(one),
  ...(names === 0 ? { cached_tokens: one.cached } : {}),
  ...(names === 1 ? { prompt_cache_hit_tokens: one.cached } : {}),
  ...(names === 2 ? { num_cached_tokens: one.cached, cache_read_input_tokens: one.cached } : {}),
  prompt_tokens_details: {
    cached_tokens: names === 3 ? one.cached : 0,
    cache_write_tokens: one.written,
    cache_creation: { ephemeral_1h_input_tokens: one.written1h },
  },
  completion_tokens_details: { reasoning_tokens: one.reasoning },
});

const responsesUsage = (one: Said): object => ({
  input_tokens: one.input,
  output_tokens: one.output,
  total_tokens: totalOf(one),
  input_tokens_details: { cached_tokens: one.cached, cache_write_tokens: one.written },
  output_tokens_details: { reasoning_tokens: one.reasoning },
});

/** What must hold for every usage that is read, from any source. */
function assertTokens(usage: Usage): void {
  const { toolCalls, outputUncounted: _, ...counts } = usage;
  for (const [name, value] of Object.entries({ ...counts, ...toolCalls })) {
    assert.ok(Number.isSafeInteger(value) && value >= 0 && value <= TOKEN_COUNT_MAX, `${name}: ${value}`);
  }
  assert.ok(usage.reasoning <= usage.output, "more reasoning than output");
  const { usage: billed } = billedUsage(usage, EVIDENCE);
  const { amount } = charge(PRICE, MULTIPLIER_ONE, billed);
  assert.ok(amount >= 0n && amount <= NANO_USD_MAX, String(amount));
}

function assertHonours(usage: Usage | undefined, one: Said, written1h: number): void {
  const { input = 0, output = 0, cached = 0, reasoning = 0 } = one;
  const written = Math.max(one.written ?? 0, written1h);
  const total = totalOf(one) ?? 0;
  const all = Math.max(total, input + output + reasoning + cached + written);
  if (!usage) {
    assert.equal(all - cached - written, 0, "every reported count is read");
    return;
  }
  assertTokens(usage);
  if (usage.unsplit !== undefined) {
    assert.deepEqual([one.input, one.output, usage.unsplit + usage.output], [undefined, undefined, total]);
    assert.equal(usage.output, reasoning);
    return;
  }
  const allInput = totalInput(usage);
  assert.ok(allInput >= input, "the input is not below the reported one");
  assert.ok(usage.output >= Math.max(output, reasoning), "the output is not below the reported one");
  assert.ok(allInput + usage.output >= total, "the sum is not below the reported total");
  assert.ok(allInput + usage.output <= all, "the sum is not above all reported counts");
  assert.ok(usage.cachedInput <= cached, "no more is billed as cached input than was cached");
  assert.ok(usage.cacheWrite + usage.cacheWrite1h <= written, "no more is billed as cache writes than was written");
  if (one.output === undefined)
    assert.ok(usage.outputUncounted || usage.output > 0, "output without a count is billed");
}

test("property, chat: no number of a usage object is billed below its value, and all together not above their sum", () => {
  fc.assert(
    fc.property(said, fc.nat(3), (one, names) => {
      assertHonours(readChat({ usage: chatUsage(one, names) }), one, one.written1h ?? 0);
    }),
    { numRuns: 20_000 },
  );
});

test("property, responses: no number of a usage object is billed below its value, and all together not above their sum", () => {
  fc.assert(
    fc.property(said, (one) => assertHonours(readResponses({ usage: responsesUsage(one) }), one, 0)),
    { numRuns: 10_000 },
  );
});

/** What was really used, and by which convention the server reports it. */
const truth = fc.record({
  plain: fc.integer({ min: 1, max: 50_000 }),
  cached: count,
  written: count,
  text: fc.integer({ min: 1, max: 50_000 }),
  reasoning: count,
  cacheBeside: fc.boolean(),
  reasoningBeside: fc.boolean(),
});

test("property, chat: a server that keeps to one convention and reports its total is billed exactly what was used", () => {
  fc.assert(
    fc.property(truth, fc.nat(3), (used, names) => {
      const cache = used.cached + used.written;
      const input = used.plain + (used.cacheBeside ? 0 : cache);
      const output = used.text + (used.reasoningBeside ? 0 : used.reasoning);
      const total = used.plain + cache + used.text + used.reasoning;
      // A surplus that fits both is read as the more expensive of the two.
      fc.pre(!(used.cacheBeside && [cache, used.cached, used.written].includes(used.reasoning)));
      const { cached, written, reasoning } = used;
      const usage = chatUsage({ input, output, total, cached, written, written1h: undefined, reasoning }, names);
      const read = readChat({ usage });
      assert.ok(read);
      const { plain, text } = used;
      const kinds = [read.input, read.cachedInput, read.cacheWrite, read.output];
      assert.deepEqual(kinds, [plain, cached, written, text + reasoning]);
      assert.equal(read.reasoning, reasoning);
    }),
    { numRuns: 20_000 },
  );
});

const entry = fc.record({
  type: fc.constantFrom("message", "compaction", "advisor_message", "fallback_message", "new_kind"),
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
});

test("property, messages: every iteration is billed once, whatever the top-level counts are", () => {
  fc.assert(
    fc.property(entry, fc.array(entry, { maxLength: 6 }), (top, iterations) => {
      const usage = readMessages({ ...top, iterations });
      assert.ok(usage);
      assertTokens(usage);
      const fallback = iterations.some(({ type }) => type === "fallback_message");
      const billed = iterations.filter((one) => !(fallback && one.type === "message" && one.output_tokens === 0));
      for (const [kind, name] of [
        ["input", "input_tokens"],
        ["cachedInput", "cache_read_input_tokens"],
        ["cacheWrite", "cache_creation_input_tokens"],
        ["output", "output_tokens"],
      ] as const) {
        const listed = billed.reduce((sum, one) => sum + one[name], 0);
        assert.ok(usage[kind] >= Math.max(top[name], listed), `${kind}: less than it says`);
        assert.ok(usage[kind] <= top[name] + listed, `${kind}: more than it names`);
      }
      assert.ok((usage.longestInput ?? 0) <= totalInput(usage));
    }),
    { numRuns: 10_000 },
  );
});

/** A chat stream of several choices that take turns; each turn produces some tokens. */
const turns = fc.record({
  n: fc.integer({ min: 1, max: 4 }),
  turns: fc.array(fc.record({ choice: fc.nat(3), tokens: fc.integer({ min: 1, max: 500 }) }), {
    minLength: 1,
    maxLength: 30,
  }),
  whole: fc.boolean(),
});

test("property, chat streams: running counts of choices add up at every moment, and are final when all choices have ended", () => {
  fc.assert(
    fc.property(turns, ({ n, turns: all, whole }) => {
      const reading = new ChatStreamUsage(n);
      const produced = new Map<number, number>();
      const sum = () => [...produced.values()].reduce((total, tokens) => total + tokens, 0);
      // Counts of several choices that only grow from chunk to chunk may be those of one counter for all.
      let last = 0;
      let oneCounter = n > 1;
      const expected = (counted: number) => {
        oneCounter &&= counted > last;
        last = counted;
        return oneCounter ? counted : sum();
      };
      const usageOf = (tokens: number) => ({ prompt_tokens: 70, completion_tokens: tokens, total_tokens: 70 + tokens });
      const chunk = (index: number, delta: object, finish_reason: string | null) => {
        return { choices: [{ index, delta, finish_reason }], usage: usageOf(produced.get(index) ?? 0) };
      };
      for (const { choice, tokens } of all) {
        const index = choice % n;
        produced.set(index, (produced.get(index) ?? 0) + tokens);
        reading.see(chunk(index, { content: "x" }, null), true);
        assert.equal(reading.usage?.output, expected(produced.get(index) ?? 0));
        assert.equal(reading.usage?.input, 70);
        assert.equal(reading.final, false, "a stream that runs is not final");
      }
      for (let index = 0; index < n; index++) {
        assert.equal(reading.final, false, "not all choices have ended");
        reading.see(chunk(index, {}, "stop"), false);
      }
      assert.equal(reading.final, true);
      if (whole) reading.see({ choices: [], usage: usageOf(sum()) }, false);
      assert.equal(reading.usage?.output, sum());
      assert.equal(reading.final, true);
    }),
    { numRuns: 2_000 },
  );
});

const anything = fc.anything({ maxDepth: 1 });
const NAMES = [
  ...["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens", "cached_tokens"],
  ...["reasoning_tokens", "citation_tokens", "num_search_queries", "num_sources_used", "prompt_cache_hit_tokens"],
  ...["prompt_cache_miss_tokens", "prompt_tokens_details", "completion_tokens_details", "cache_creation", "x_details"],
  ...["server_tool_use", "server_side_tool_usage_details", "iterations", "cache_read_input_tokens"],
  ...["cache_creation_input_tokens", "output_tokens_details", "input_tokens_details", "__proto__", "constructor"],
];
const number = fc.oneof(
  fc.nat(),
  fc.integer(),
  fc.double(),
  fc.constantFrom(TOKEN_COUNT_MAX, TOKEN_COUNT_MAX + 1, 2 ** 53),
);
/** Nested objects, up to three levels, with known names and others. */
function hostileObject(depth: number): fc.Arbitrary<object> {
  const inner =
    depth === 0 ? anything : fc.oneof(hostileObject(depth - 1), fc.array(hostileObject(depth - 1), { maxLength: 3 }));
  const value = fc.oneof({ weight: 4, arbitrary: number }, { weight: 2, arbitrary: inner }, anything);
  return fc.dictionary(fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 5 })), value, { maxKeys: 8 });
}
const hostile = hostileObject(2);

test("the longest input of several iterations is limited to the largest count", () => {
  const usage = { iterations: [{ cache_read_input_tokens: 1, cache_creation_input_tokens: TOKEN_COUNT_MAX }] };
  assert.equal(readMessages(usage)?.longestInput, TOKEN_COUNT_MAX);
});

test("property: any JSON yields only valid numbers of tokens", () => {
  let read = 0;
  fc.assert(
    fc.property(hostile, hostile, (usage, more) => {
      const reply = JSON.parse(
        JSON.stringify({ usage, x_groq: more, timings: more, output: [more], choices: [{ usage: more }] }),
      );
      for (const found of [readChat(reply), readMessages(reply.usage), readResponses(reply)]) {
        if (!found) continue;
        read += 1;
        assertTokens(found);
      }
      const stream = new ChatStreamUsage(3);
      for (const chunk of [reply, { ...reply, usage: more }]) stream.see(chunk, true);
      if (stream.usage) assertTokens(stream.usage);
    }),
    { numRuns: 3_000 },
  );
  assert.ok(read > 300, `${read} were read`);
});

test("an object of a hundred thousand members is read in linear time", () => {
  // Quadratic reading of any of these would take minutes.
  const many = 100_000;
  const names = Array.from({ length: many }, (_, at) => `tool_${at}`);
  const iterations = names.map((_, at) => ({
    type: at % 2 ? "message" : "fallback_message",
    input_tokens: 1,
    output_tokens: at % 3,
  }));
  const requests = Object.fromEntries(names.map((name) => [`${name}_requests`, 1]));
  const items = names.map((id) => ({ type: "code_interpreter_call", container_id: id }));
  const choices = names.map((_, index) => ({ index, usage: { prompt_tokens: 1, completion_tokens: 1 } }));
  const startedAt = performance.now();
  const messages = readMessages({ input_tokens: 1, output_tokens: 1, iterations, server_tool_use: requests });
  const responses = readResponses({ usage: { input_tokens: 1, output_tokens: 1 }, output: items });
  const chat = readChat({ choices, usage: { prompt_tokens: 1, completion_tokens: 1, server_tool_use: requests } });
  const joined = readChat({ choices });
  const stream = new ChatStreamUsage(128);
  for (let at = 0; at < 1_000; at++) stream.see({ choices: choices.slice(0, 100), usage: null }, true);
  assert.ok(messages && responses && chat && joined && stream.usage);
  assert.equal(joined.output, many);
  assert.ok(performance.now() - startedAt < 20_000);
  assert.ok(Object.keys(messages.toolCalls).length <= 16);
});
