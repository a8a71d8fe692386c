/**
 * Random events, and real streams with changes: the result is an ordered reply or a fault, and never a crash
 * (ARCHITECTURE.md promise 8, docs/failure-model.md row C4).
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { decodeBytes, decodePayloads, decodeWhole, planFor, streamBytes, wholeBody } from "./decoding.ts";

const TOOLS = { f: { kind: "function", name: "f" }, g: { kind: "custom", name: "g" } } as const;

const BEHAVIOR = {
  thinking: "thinking",
  texts: ["text", "more"],
  refusal: "no",
  interleave: true,
  deltaChars: 3,
  tools: [
    { name: "f", arguments: { a: "x" } },
    { name: "g", arguments: { input: "y" } },
  ],
};

const WORDS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["stop", "tool_calls", "length", "error", "function", "custom"],
  messages: [
    ...["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"],
    ...["message_stop", "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "text_delta", "ping"],
    ...["thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "end_turn", "tool_use", "error"],
  ],
  responses: [
    ...["response.created", "response.completed", "response.incomplete", "response.failed", "keepalive", "message"],
    ...["response.output_item.added", "response.output_item.done", "response.content_part.done", "function_call"],
    ...["response.output_text.delta", "response.refusal.delta", "response.output_text.annotation.added", "reasoning"],
    ...["response.function_call_arguments.delta", "response.function_call_arguments.done", "custom_tool_call"],
    ...["response.reasoning_summary_text.delta", "response.reasoning_text.done", "output_text", "completed", "failed"],
  ],
};
const MEMBERS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [
    ...["choices", "delta", "message", "content", "tool_calls", "function", "custom", "name", "arguments", "input"],
    ...["index", "id", "finish_reason", "usage", "reasoning", "refusal", "function_call", "logprobs", "annotations"],
  ],
  messages: [
    ...["type", "index", "content_block", "delta", "text", "thinking", "signature", "partial_json", "data", "citation"],
    ...["message", "usage", "stop_reason", "name", "id", "input", "content", "stop_details", "output_tokens", "error"],
  ],
  responses: [
    ...[
      "type",
      "item",
      "item_id",
      "output_index",
      "content_index",
      "summary_index",
      "delta",
      "part",
      "text",
      "response",
    ],
    ...["output", "content", "summary", "arguments", "call_id", "name", "id", "encrypted_content", "status", "usage"],
  ],
};

function junk(protocol: Protocol): fc.Arbitrary<unknown> {
  const leaf = fc.oneof(
    fc.constantFrom<unknown>(
      null,
      true,
      0,
      1,
      -1,
      1.5,
      1e300,
      "",
      " ",
      "{",
      '{"a":1}',
      "\ud800",
      "f",
      "g",
      "__proto__",
    ),
    fc.constantFrom<unknown>(...WORDS[protocol]),
    fc.string({ maxLength: 5 }),
  );
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, depthSize: "small" },
      leaf,
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...MEMBERS[protocol]), tie("value"), { maxKeys: 6 }),
    ),
  })).value as fc.Arbitrary<unknown>;
}

/** Opening events, so that random events pass the decoder's first check. */
const OPENING: Readonly<Record<Protocol, object>> = {
  chat: { choices: [{ index: 0, delta: { role: "assistant" } }] },
  messages: { type: "message_start", message: { id: "m" } },
  responses: { type: "response.created", response: { id: "r" } },
};

/** Wraps a random value as an event of the protocol. */
function eventOf(protocol: Protocol, word: string, value: unknown): unknown {
  const members = typeof value === "object" && value !== null && !Array.isArray(value) ? value : { value };
  if (protocol !== "chat") return { type: word, ...members };
  return { choices: [{ index: 0, delta: members, ...members }] };
}

/** Puts a value at a position of a JSON tree, which is found by following `steps`. */
function mutate(root: unknown, steps: readonly number[], value: unknown): unknown {
  if (typeof root !== "object" || root === null || steps.length === 0) return value;
  const keys = Object.keys(root);
  const key = keys[(steps[0] ?? 0) % Math.max(1, keys.length)];
  if (key === undefined) return value;
  const copy: Record<string, unknown> = Array.isArray(root) ? ([...root] as never) : { ...root };
  copy[key] = mutate(copy[key], steps.slice(1), value);
  return copy;
}

for (const protocol of PROTOCOL_NAMES) {
  const plan = planFor(protocol, TOOLS);
  const steps = fc.array(fc.nat(9), { maxLength: 6 });

  test(`${protocol}: random events give an ordered reply or a fault`, () => {
    const events = fc.array(fc.tuple(fc.constantFrom(...WORDS[protocol]), junk(protocol)), { maxLength: 12 });
    fc.assert(
      fc.property(events, (list) => {
        decodePayloads([OPENING[protocol], ...list.map(([word, value]) => eventOf(protocol, word, value))], plan);
      }),
      { numRuns: 1500 },
    );
  });

  test(`${protocol}: real streams with events changed, duplicated, lost and moved give an ordered reply or a fault`, () => {
    const payloads = streamBytes(protocol, BEHAVIOR)
      .toString()
      .split("\n")
      .flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
    const change = fc.record({
      at: fc.nat(payloads.length - 1),
      kind: fc.constantFrom("lose", "double", "move", "mutate"),
      to: fc.nat(payloads.length - 1),
      steps,
      value: junk(protocol),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
        const list = [...payloads];
        for (const { at, kind, to, steps: path, value } of changes) {
          const found = list[at % list.length] ?? "{}";
          if (kind === "lose") list.splice(at, 1);
          else if (kind === "double") list.splice(at, 0, found);
          else if (kind === "move") list.splice(to, 0, ...list.splice(at, 1));
          else if (found !== "[DONE]")
            list[at % list.length] = JSON.stringify(mutate(JSON.parse(found), path, value)) ?? "";
        }
        decodePayloads(list, plan);
      }),
      { numRuns: 1500 },
    );
  });

  test(`${protocol}: real streams with changed bytes give an ordered reply or a fault`, () => {
    const bytes = streamBytes(protocol, BEHAVIOR);
    const change = fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) => {
        const copy = Buffer.from(bytes);
        for (const [at, byte] of changes) copy[at] = byte;
        decodeBytes([copy], plan);
      }),
      { numRuns: 500 },
    );
  });

  test(`${protocol}: whole replies with a random value anywhere give a reply or a fault`, () => {
    const body = wholeBody(protocol, BEHAVIOR);
    fc.assert(
      fc.property(steps, junk(protocol), (path, value) => {
        const changed = mutate(body, path, value);
        if (typeof changed !== "object" || changed === null || Array.isArray(changed)) return;
        const decoded = decodeWhole(changed, plan);
        if ("reason" in decoded) return;
        JSON.stringify(decoded.reply);
        assert.ok(decoded.produced.bytes >= 0 && decoded.produced.tokens >= 0);
      }),
      { numRuns: 1500 },
    );
  });
}
