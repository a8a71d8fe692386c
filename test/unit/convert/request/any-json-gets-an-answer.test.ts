/**
 * Random JSON, and real bodies in which one node is replaced: every translation gives a body or a refusal, and never
 * crashes.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import fc from "fast-check";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate } from "./translate.ts";

const GOLDENS = new URL("../../../golden/requests/", import.meta.url);

const WORDS = ["text", "user", "assistant", "system", "tool", "developer", "function", "custom", "auto", "required"];
const TYPES = [
  ...["tool_use", "tool_result", "thinking", "redacted_thinking", "image", "image_url", "document", "message"],
  ...["reasoning", "function_call", "function_call_output", "custom_tool_call", "additional_tools", "namespace"],
  ...["input_text", "input_image", "input_file", "output_text", "refusal", "shell_call", "shell_call_output"],
  ...["json_schema", "enabled", "disabled", "allowed_tools", "grammar", "web_search", "tool_search_output"],
];
const MEMBERS = [
  ...["type", "role", "content", "text", "id", "name", "call_id", "tool_call_id", "tool_use_id", "input", "arguments"],
  ...["tool_calls", "function", "custom", "output", "source", "data", "media_type", "url", "image_url", "tools"],
  ...["parameters", "schema", "format", "summary", "encrypted_content", "effort", "namespace", "action", "operation"],
  ...["__proto__", "constructor", "anyOf", "allOf", "properties", "required", "cache_control", "is_error"],
];
const TOP: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [
    ...["messages", "tools", "tool_choice", "stop", "response_format", "stream", "stream_options", "reasoning_effort"],
    ...["max_tokens", "max_completion_tokens", "functions", "function_call", "n", "logprobs", "temperature", "user"],
    ...["web_search_options", "logit_bias", "modalities", "metadata", "thinking", "chat_template_kwargs"],
  ],
  messages: [
    ...["messages", "system", "tools", "tool_choice", "stop_sequences", "thinking", "output_config", "metadata"],
    ...["max_tokens", "temperature", "top_p", "top_k", "stream", "mcp_servers", "container", "output_format", "speed"],
  ],
  responses: [
    ...["input", "instructions", "tools", "tool_choice", "text", "reasoning", "include", "metadata", "stream"],
    ...["max_output_tokens", "top_logprobs", "background", "previous_response_id", "prompt", "user", "truncation"],
  ],
};

const junk: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: "small" },
    fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      1,
      -1,
      1.5,
      1e300,
      "",
      " ",
      "\ud800",
      "gw1.",
      "data:image/png;base64,A",
    ),
    fc.constantFrom<unknown>(...WORDS, ...TYPES),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...MEMBERS), tie("value"), { maxKeys: 6, noNullPrototype: true }),
  ),
})).value;

const capabilities: fc.Arbitrary<Partial<Capabilities>> = fc.record({
  thinking: fc.constantFrom("none", "budget", "adaptive", "always", "between", "both"),
  sampling: fc.constantFrom("full", "none"),
  midSystem: fc.boolean(),
  prefill: fc.boolean(),
  customTools: fc.boolean(),
  openaiNative: fc.boolean(),
  structuredOutputs: fc.boolean(),
  reasoningContent: fc.constantFrom("off", "read", "roundtrip"),
});

function judge(from: Protocol, to: Protocol, body: Body, able: Partial<Capabilities>): void {
  const frozen = JSON.stringify(body);
  const first = translate(from, body, routeTo(to, able));
  const second = translate(from, JSON.parse(frozen), routeTo(to, able));
  assert.equal(JSON.stringify(body), frozen, "the client's body was changed in place");
  if (isRefusal(first)) {
    assert.ok(first.facts.param, "a refusal names the member at fault");
    assert.deepEqual(second, first);
    return;
  }
  assert.ok(!isRefusal(second));
  const text = new TextDecoder().decode(first.body);
  assert.equal(new TextDecoder().decode(second.body), text, "equal requests give equal bytes");
  assert.equal((JSON.parse(text) as Body).model, "upstream-model");
}

for (const from of PROTOCOL_NAMES) {
  for (const to of PROTOCOL_NAMES) {
    test(`random members get an answer, ${from} to ${to}`, () => {
      const body = fc.dictionary(fc.constantFrom(...TOP[from]), junk, { maxKeys: 8, noNullPrototype: true });
      fc.assert(
        fc.property(body, capabilities, (value, able) => judge(from, to, value, able)),
        { numRuns: 400 },
      );
    });

    test(`real bodies with one node replaced get an answer, ${from} to ${to}`, () => {
      const bodies = goldenBodies(from);
      const choice = fc.tuple(fc.constantFrom(...bodies), fc.nat(), junk, capabilities);
      fc.assert(
        fc.property(choice, ([body, place, value, able]) => judge(from, to, withHole(body, place, value), able)),
        { numRuns: 400 },
      );
    });
  }
}

function goldenBodies(from: Protocol): readonly Body[] {
  const files = readdirSync(new URL(`${from}/`, GOLDENS)).filter((name) => !name.includes(".expected."));
  return files.map((file) => JSON.parse(readFileSync(new URL(`${from}/${file}`, GOLDENS), "utf8")).body);
}

/** A copy of a body in which the node number `place` (modulo their count) is replaced by another value. */
function withHole(body: Body, place: number, value: unknown): Body {
  const copy = structuredClone(body) as Record<string, unknown>;
  const holes: (() => void)[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const members = node as Record<string, unknown>;
    for (const key of Object.keys(members)) {
      holes.push(() => {
        members[key] = value;
      });
      visit(members[key]);
    }
  };
  visit(copy);
  holes[place % holes.length]?.();
  return copy;
}
