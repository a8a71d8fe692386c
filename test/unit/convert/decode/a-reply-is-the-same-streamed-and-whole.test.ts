/**
 * A reply is the same whether the upstream streams it or not (docs/translation-rules.md rule 53), tested with replies
 * of the simulator.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { decodeBytes, gather, planFor, streamBytes, wholeBody, wholeOf } from "./decoding.ts";

const CASES: Readonly<Record<string, Behavior>> = {
  text: { text: "Grüße, 👋 Welt: a text that is cut into some deltas." },
  "several texts": { texts: ["one", "two", "three"] },
  "several texts in one item": { texts: ["one", "two"], oneItem: true },
  thinking: { thinking: "let me think about it for a while", text: "done" },
  "raw reasoning": { thinking: "raw thoughts", rawReasoning: true, text: "ok" },
  "redacted thinking": { redacted: "c2VjcmV0", text: "ok" },
  refusal: { refusal: "I will not do that." },
  tools: { text: "Let me", tools: [{ name: "f", arguments: { q: "x", deep: { a: [1, 2, "}"] } } }, { name: "g" }] },
  "interleaved tools": {
    interleave: true,
    tools: [
      { name: "f", arguments: { a: "a long enough argument" } },
      { name: "g", arguments: { b: "another long argument" } },
      { name: "h" },
    ],
  },
  "broken arguments": { tools: [{ name: "f", arguments: '{"a": [1,' }] },
  "cut at the limit": { text: "a long text that is cut", stop: "length" },
  filtered: { text: "partly", stop: "content_filter" },
  "pings and padding": { text: "slow and padded", pings: 1, obfuscation: true },
  "usage on every chunk": { text: "counting all the time", usageOnEveryChunk: true },
  "usage with caches": { text: "ok", usage: { input: 10, cached: 90, cacheWrite: 5, output: 20, reasoning: 8 } },
};

function check(protocol: Protocol, behavior: Behavior): void {
  const plan = planFor(protocol);
  const { items, stop, usage } = wholeOf(wholeBody(protocol, behavior), plan);
  const { events, decoder } = decodeBytes([streamBytes(protocol, behavior)], plan);
  const streamed = gather(events);
  assert.deepEqual(streamed, { items, stop, usage });
  assert.equal(decoder.counts().final, true);
  assert.deepEqual(decoder.counts().usage, usage);
}

for (const protocol of PROTOCOL_NAMES) {
  for (const [name, behavior] of Object.entries(CASES)) {
    if (protocol === "messages" && name === "broken arguments") continue; // A whole message cannot hold them.
    test(`${protocol}: ${name} gives the same reply streamed and whole`, () => check(protocol, behavior));
  }

  test(`${protocol}: any behavior gives the same reply streamed and whole`, () => {
    const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
    const tool = fc.record({ name: fc.constantFrom("f", "g", "h"), arguments: fc.dictionary(words, words) });
    const behaviors = fc.record(
      {
        thinking: words,
        texts: fc.array(words, { minLength: 1, maxLength: 3 }),
        refusal: words,
        tools: fc.array(tool, { maxLength: 4 }),
        interleave: fc.boolean(),
        oneItem: fc.boolean(),
        deltaChars: fc.integer({ min: 1, max: 20 }),
        pings: fc.constantFrom(1, 3),
        stop: fc.constantFrom("end", "tools", "length", "content_filter"),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(behaviors, (behavior) => check(protocol, behavior)),
      { numRuns: 150 },
    );
  });
}
