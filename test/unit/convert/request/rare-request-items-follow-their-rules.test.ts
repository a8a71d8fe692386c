/** Parts of requests that rarely occur in the recorded clients, but have a rule in docs/translation-rules.md. */
import assert from "node:assert/strict";
import test from "node:test";
import { originOf, sealReasoning } from "../../../../src/convert/rules/envelope.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { CONTEXT, routeTo, translate, upstreamBody } from "./translate.ts";

const hi = { role: "user", content: "hi" };

test("rule 21: items of hosted tools are left out, named once, and do not split an assistant's turn", () => {
  const input = [
    hi,
    { role: "assistant", content: "a" },
    { type: "web_search_call", id: "ws_1" },
    { type: "tool_search_call", call_id: null, execution: "server", arguments: {} },
    {
      role: "assistant",
      content: [
        { type: "output_text", text: "b" },
        { type: "output_text", text: "c" },
      ],
    },
    hi,
  ];
  const encoded = translate("responses", { input }, routeTo("chat"));
  assert.ok(!isRefusal(encoded));
  assert.deepEqual(encoded.dropped, ["input.hosted_call"]);
  const { messages } = JSON.parse(new TextDecoder().decode(encoded.body));
  assert.deepEqual(messages, [hi, { role: "assistant", content: "a\n\nbc" }, hi]);
});

test("rule 21: server tools are left out as a pair and named once", () => {
  const content = [
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
    { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
    { type: "text", text: "a" },
  ];
  const body = { max_tokens: 9, messages: [hi, { role: "assistant", content }, hi] };
  const encoded = translate("messages", body, routeTo("responses"));
  assert.ok(!isRefusal(encoded));
  assert.deepEqual(encoded.dropped, ["server_tool_use"]);
  assert.equal(JSON.parse(new TextDecoder().decode(encoded.body)).input.length, 3);
});

test("rule 18: audio in a responses message is refused at its part", () => {
  const outcome = translate(
    "responses",
    { input: [{ role: "user", content: [{ type: "input_audio" }] }] },
    routeTo("chat"),
  );
  assert.ok(isRefusal(outcome));
  assert.equal(outcome.facts.param, "input[0].content[0]");
});

test("rule 18: a failed result says so in its first text part, or in a text part that is added", () => {
  const png = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA" } };
  const outputOf = (content: readonly object[]) => {
    const result = { type: "tool_result", tool_use_id: "a", is_error: true, content };
    const use = { type: "tool_use", id: "a", name: "f", input: {} };
    const messages = [hi, { role: "assistant", content: [use] }, { role: "user", content: [result] }];
    const { input } = upstreamBody("messages", { max_tokens: 9, messages }, routeTo("responses"));
    return (input as { output?: { type: string; text?: string }[] }[])[2]?.output?.map(
      (part) => part.text ?? part.type,
    );
  };
  assert.deepEqual(outputOf([png, { type: "text", text: "bad" }]), ["input_image", "Error: bad"]);
  assert.deepEqual(outputOf([png]), ["Error: ", "input_image"]);
  assert.deepEqual(outputOf([]), ["Error: "]);
});

test("an empty result is an empty text for every protocol", () => {
  const call = { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f" } }] };
  const body = { messages: [hi, call, { role: "tool", tool_call_id: "a", content: [] }] };
  const sent = upstreamBody("chat", body, routeTo("responses")) as { input: { output?: unknown }[] };
  assert.equal(sent.input[2]?.output, "");
  const other = upstreamBody("chat", body, routeTo("messages")) as { messages: { content: { content: unknown }[] }[] };
  assert.equal(other.messages[2]?.content[0]?.content, "");
});

test("rule 27: thinking is left out with a forced tool that forbids it, and the effort stays", () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const body = { messages: [hi], tools, tool_choice: "required", reasoning_effort: "high" };
  const both = upstreamBody("chat", body, routeTo("messages", { thinking: "both" }));
  assert.deepEqual([both.thinking, both.output_config], [undefined, { effort: "high" }]);
  const adaptive = upstreamBody("chat", body, routeTo("messages", { thinking: "adaptive" }));
  assert.deepEqual(adaptive.thinking, { type: "adaptive" });
});

test("rule 27: a model that always thinks gets no temperature, and one whose thinking is off does", () => {
  const body = { messages: [hi], reasoning_effort: "none", temperature: 0.5 };
  const sent = (thinking: "always" | "budget" | "adaptive") =>
    upstreamBody("chat", body, routeTo("messages", { thinking })).temperature;
  assert.deepEqual([sent("always"), sent("budget"), sent("adaptive")], [undefined, 0.5, 0.5]);
});

test("system text before the first turn is part of the leading system text, whatever its role", () => {
  const messages = [{ role: "system", content: "S" }, hi];
  const sent = upstreamBody("messages", { max_tokens: 9, system: "T", messages }, routeTo("chat"));
  assert.deepEqual(sent.messages, [{ role: "system", content: "T\n\nS" }, hi]);
});

test("rule 11: the attribution line is removed, and text after it stays", () => {
  const system = "x-anthropic-billing-header: cch=1;\nYou are X";
  const sent = upstreamBody("messages", { max_tokens: 9, system, messages: [hi] }, routeTo("chat"));
  assert.deepEqual(sent.messages, [{ role: "system", content: "You are X" }, hi]);
});

test("rule 26: a format that the model does not support becomes a line of system text", () => {
  const response_format = { type: "json_schema", json_schema: { name: "r", schema: { type: "object" } } };
  const body = { messages: [hi], response_format };
  const route = routeTo("messages", { structuredOutputs: false });
  const text = 'Respond only with one valid JSON object that follows this JSON Schema:\n{"type":"object"}';
  assert.deepEqual(upstreamBody("chat", body, route).system, [{ type: "text", text }]);
  const object = { messages: [hi], response_format: { type: "json_object" } };
  const line = { type: "text", text: "Respond only with one valid JSON object." };
  assert.deepEqual(upstreamBody("chat", object, routeTo("messages")).system, [line]);
  assert.deepEqual(upstreamBody("chat", object, routeTo("responses")).text, { format: { type: "json_object" } });
});

test("rule 28: a user id longer than 128 characters becomes a digest, and chat gets one only if it knows the member", () => {
  const body = { max_tokens: 9, messages: [hi], metadata: { user_id: "u".repeat(129) } };
  assert.equal(upstreamBody("messages", body, routeTo("chat")).safety_identifier, undefined);
  const native = upstreamBody("messages", body, routeTo("chat", { openaiNative: true })).safety_identifier;
  assert.match(String(native), /^[0-9a-f]{64}$/);
  assert.equal(upstreamBody("messages", body, routeTo("responses")).safety_identifier, native);
});

test("long lists inside a tool's schema are merged in linear time", () => {
  const required = Array.from({ length: 100_000 }, (_, index) => `p${index}`);
  const parameters = { anyOf: [{ required }, { required: [...required].reverse() }] };
  const body = { messages: [hi], tools: [{ type: "function", function: { name: "f", parameters } }] };
  const sent = upstreamBody("chat", body, routeTo("messages")) as {
    tools: { input_schema: { required: unknown[] } }[];
  };
  assert.equal(sent.tools[0]?.input_schema.required.length, 100_000);
});

test("a long run of calls and results is translated in linear time", () => {
  const many = Array.from({ length: 30_000 }, (_, index) => `call_${index}`);
  const tool_calls = many.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }));
  const results = many.map((id) => ({ role: "tool", tool_call_id: id, content: "1" }));
  const body = { messages: [hi, { role: "assistant", tool_calls }, ...results] };
  const sent = upstreamBody("chat", body, routeTo("messages")) as { messages: { content: unknown[] }[] };
  assert.equal(sent.messages[2]?.content.length, 30_000);
});

test("rule 24: chat gets up to four stop strings, and none if there are more", () => {
  const stopOf = (stop_sequences: readonly string[]) =>
    upstreamBody("messages", { max_tokens: 9, messages: [hi], stop_sequences }, routeTo("chat")).stop;
  assert.deepEqual(stopOf(["a", "b", "c", "d"]), ["a", "b", "c", "d"]);
  assert.equal(stopOf(["a", "b", "c", "d", "e"]), undefined);
});

test("rule 27: a loop that began with redacted thinking keeps thinking on", () => {
  const route = routeTo("messages", { thinking: "budget" });
  const call = { type: "function_call", call_id: "a", name: "f", arguments: "{}" };
  const result = { type: "function_call_output", call_id: "a", output: "r" };
  const thinkingOf = (...before: readonly object[]) => {
    const body = { max_output_tokens: 9_000, input: [hi, ...before, call, result], reasoning: { effort: "low" } };
    return upstreamBody("responses", body, route).thinking;
  };
  const redacted = sealReasoning([{ type: "redacted_thinking", data: "x" }], originOf(route), CONTEXT);
  const reasoning = { type: "reasoning", summary: [], encrypted_content: redacted };
  assert.deepEqual(thinkingOf(reasoning), { type: "enabled", budget_tokens: 4_096 });
  assert.equal(thinkingOf(), undefined);
});

test("rule 28: the default service tier of OpenAI is the standard tier of messages", () => {
  const encoded = translate("chat", { messages: [hi], service_tier: "default" }, routeTo("messages"));
  assert.ok(!isRefusal(encoded));
  assert.deepEqual(encoded.dropped, []);
  assert.equal(JSON.parse(new TextDecoder().decode(encoded.body)).service_tier, "standard_only");
});

test("rule 15: the breakpoint of a removed blank text does not replace that of the block before it", () => {
  const hour = { type: "ephemeral", ttl: "1h" };
  const content = [
    { type: "text", text: "a", cache_control: hour },
    { type: "text", text: " ", cache_control: { type: "ephemeral" } },
  ];
  const sent = upstreamBody("messages", { max_tokens: 9, messages: [{ role: "user", content }] }, routeTo("messages"));
  assert.deepEqual((sent.messages as { content: unknown }[])[0]?.content, [content[0]]);
});
