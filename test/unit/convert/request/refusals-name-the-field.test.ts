/**
 * If a translation cannot carry a member without changing the answer, the request is refused with the path in the
 * client's own spelling, by the rules of docs/translation-rules.md.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate } from "./translate.ts";

type Row = readonly [
  rule: string,
  from: Protocol,
  to: Protocol,
  body: Body,
  param: string,
  capabilities?: Partial<Capabilities>,
];

const own = { type: "function", function: { name: "f" } };
const formatOf = (name: string) => ({ type: "json_schema", schema: { type: "object", properties: { [name]: {} } } });
const hi = { role: "user", content: "hi" };
const call = { role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f" } }] };
const tool = { role: "tool", tool_call_id: "a", content: "1" };
const use = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "f", input: {} }] };
const result = { type: "tool_result", tool_use_id: "a", content: "1" };
const fcall = { type: "function_call", call_id: "a", name: "f", arguments: "{}" };
const foutput = { type: "function_call_output", call_id: "a", output: "1" };
const image = (url: string) => ({ role: "user", content: [{ type: "image_url", image_url: { url } }] });

const ROWS: readonly Row[] = [
  [
    "rule 37 two choices",
    "chat",
    "messages",
    { messages: [hi], tools: [own], tool_choice: "auto", function_call: { name: "f" } },
    "function_call",
  ],
  ["rule 12 orphan", "chat", "messages", { messages: [hi, tool] }, "messages[1].tool_call_id"],
  [
    "rule 12 orphan after another",
    "chat",
    "responses",
    { messages: [hi, call, tool, hi, tool] },
    "messages[4].tool_call_id",
  ],
  ["rule 12 doubled", "chat", "messages", { messages: [hi, call, tool, tool] }, "messages[3].tool_call_id"],
  ["rule 12 unanswered", "chat", "responses", { messages: [hi, call, hi] }, "messages[1].tool_calls[0].id"],
  ["rule 12 unanswered at the end", "chat", "messages", { messages: [hi, call] }, "messages[1].tool_calls[0].id"],
  ["rule 12 orphan", "messages", "chat", { messages: [{ role: "user", content: [result] }] }, "messages.0.content.0"],
  [
    "rule 12 doubled",
    "messages",
    "responses",
    { messages: [hi, use, { role: "user", content: [result, result] }] },
    "messages.2.content.1",
  ],
  [
    "rule 4 is_error as text",
    "messages",
    "chat",
    { messages: [hi, use, { role: "user", content: [{ ...result, is_error: "true" }] }] },
    "messages.2.content.0.is_error",
  ],
  [
    "rule 4 is_error as a number",
    "messages",
    "responses",
    { messages: [hi, use, { role: "user", content: [{ ...result, is_error: 1 }] }] },
    "messages.2.content.0.is_error",
  ],
  [
    "rule 26 two formats",
    "messages",
    "chat",
    { messages: [hi], output_config: { format: formatOf("a") }, output_format: formatOf("b") },
    "output_format",
  ],
  ["rule 12 unanswered", "messages", "chat", { messages: [hi, use, hi] }, "messages.1.content.0"],
  ["rule 12 orphan", "responses", "chat", { input: [hi, foutput] }, "input[1].call_id"],
  ["rule 12 doubled", "responses", "messages", { input: [hi, fcall, foutput, foutput] }, "input[3].call_id"],
  ["rule 12 unanswered", "responses", "chat", { input: [hi, fcall] }, "input[1].call_id"],
  ["rule 12 unanswered async", "responses", "messages", { input: [hi, { ...fcall, async: true }] }, "input[1].call_id"],
  ["rule 12 doubled call", "responses", "chat", { input: [hi, fcall, fcall, foutput] }, "input[2].call_id"],
  ["rule 15", "chat", "messages", { messages: [{ role: "user", content: " \n" }] }, "messages[0]"],
  ["rule 15", "responses", "messages", { input: [{ role: "user", content: "" }] }, "input[0]"],
  ["rule 4", "chat", "messages", { messages: [hi], reasoning_effort: "xhign" }, "reasoning_effort"],
  ["rule 4", "messages", "chat", { messages: [hi], output_config: { effort: "much" } }, "output_config.effort"],
  ["rule 4", "responses", "messages", { input: "hi", reasoning: { effort: "much" } }, "reasoning.effort"],
  ["rule 4", "chat", "messages", { messages: [{ role: "robot", content: "hi" }] }, "messages[0].role"],
  ["rule 4", "chat", "messages", { messages: [] }, "messages"],
  ["rule 4", "messages", "responses", { messages: [] }, "messages"],
  ["rule 4", "responses", "chat", { input: [] }, "input"],
  ["rule 22", "chat", "messages", { messages: [hi], max_completion_tokens: 0 }, "max_completion_tokens"],
  ["rule 22", "chat", "messages", { messages: [hi], max_tokens: 1.5 }, "max_tokens"],
  [
    "rule 18",
    "chat",
    "messages",
    { messages: [hi, { role: "assistant", audio: { id: "x" } }, hi] },
    "messages[1].audio",
  ],
  ["rule 17", "chat", "messages", { messages: [hi, { role: "assistant", content: "So " }] }, "messages"],
  ["rule 30", "chat", "messages", { messages: [hi], logprobs: true }, "logprobs"],
  ["rule 30", "chat", "messages", { messages: [hi], top_logprobs: 2 }, "top_logprobs"],
  ["rule 30", "chat", "messages", { messages: [hi], modalities: ["text", "audio"] }, "modalities"],
  ["rule 30", "chat", "messages", { messages: [hi], audio: { voice: "x" } }, "audio"],
  [
    "rule 30",
    "chat",
    "messages",
    { messages: [hi], web_search_options: {}, tools: [{ type: "function", function: { name: "f" } }] },
    "web_search_options",
  ],
  ["rule 30", "chat", "messages", { messages: [hi], moderation: { model: "m" } }, "moderation"],
  ["rule 32", "chat", "messages", { messages: [hi], stream_options: { include_usage: true } }, "stream_options"],
  ["rule 30", "chat", "responses", { messages: [hi], n: 3 }, "n"],
  ["rule 17", "messages", "chat", { messages: [hi, { role: "assistant", content: "{" }] }, "messages"],
  ["rule 17", "messages", "responses", { messages: [hi, { role: "assistant", content: "{" }] }, "messages"],
  ["rule 22", "messages", "chat", { messages: [hi], max_tokens: 0 }, "max_tokens"],
  ["rule 23", "messages", "chat", { messages: [hi], temperature: 1.5 }, "temperature"],
  ["rule 30", "messages", "chat", { messages: [hi], inference_geo: "eu" }, "inference_geo"],
  ["rule 30", "messages", "responses", { messages: [hi], container: "c" }, "container"],
  ["rule 30", "messages", "chat", { messages: [hi], mcp_servers: [{ url: "u" }] }, "mcp_servers"],
  ["rule 30", "messages", "chat", { messages: [hi], thread: { id: "t" } }, "thread"],
  ["rule 21", "responses", "chat", { input: [hi, { type: "compaction", encrypted_content: "x" }] }, "input[1]"],
  ["rule 21", "responses", "messages", { input: [hi, { type: "compaction_trigger" }] }, "input[1].type"],
  ["rule 21", "responses", "chat", { input: [hi, { type: "item_reference", id: "x" }] }, "input[1].type"],
  ["rule 30", "responses", "messages", { input: "hi", conversation: "conv_1" }, "conversation"],
  ["rule 30", "responses", "chat", { input: "hi", background: true }, "background"],
  ["rule 30", "responses", "messages", { input: "hi", background_options: {} }, "background_options"],
  ["rule 30", "responses", "chat", { input: "hi", prompt: { id: "p" } }, "prompt"],
  ["rule 30", "responses", "messages", { input: "hi", include: ["message.output_text.logprobs"] }, "include"],
  [
    "rule 18 audio",
    "chat",
    "messages",
    { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
    "messages[0].content[0]",
  ],
  [
    "rule 18 file id",
    "responses",
    "chat",
    { input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }] },
    "input[0].content[0].file_id",
  ],
  [
    "rule 18 file id",
    "messages",
    "chat",
    { messages: [{ role: "user", content: [{ type: "image", source: { type: "file", file_id: "f" } }] }] },
    "messages.0.content.0",
  ],
  [
    "rule 18 PDF URL",
    "messages",
    "chat",
    { messages: [{ role: "user", content: [{ type: "document", source: { type: "url", url: "https://e/x.pdf" } }] }] },
    "messages.0.content.0",
  ],
  [
    "rule 18 file type",
    "chat",
    "messages",
    {
      messages: [{ role: "user", content: [{ type: "file", file: { file_data: "data:application/zip;base64,AA" } }] }],
    },
    "messages[0].content[0].file",
  ],
  [
    "rule 18 not an address",
    "chat",
    "messages",
    { messages: [image("file:///etc/passwd")] },
    "messages[0].content[0].image_url",
  ],
  [
    "rule 6 vision",
    "chat",
    "messages",
    { messages: [image("https://e/a.png")] },
    "messages[0].content[0].image_url",
    { vision: false },
  ],
  [
    "rule 6 pdf",
    "chat",
    "responses",
    {
      messages: [{ role: "user", content: [{ type: "file", file: { file_data: "data:application/pdf;base64,AA" } }] }],
    },
    "messages[0].content[0].file",
    { pdf: false },
  ],
];

for (const [rule, from, to, body, param, capabilities] of ROWS) {
  test(`${rule}, ${from} to ${to}: refused with the path ${param}`, () => {
    const limited = from === "messages" ? { max_tokens: 100, ...body } : body;
    const outcome = translate(from, limited, routeTo(to, capabilities));
    assert.ok(isRefusal(outcome), "the request was not refused");
    assert.equal(outcome.facts.param, param);
    assert.match(outcome.facts.detail ?? "", /\.$/);
  });
}

test("a prefill is kept, without trailing white space, if the model accepts one (rule 17)", () => {
  const body = { messages: [hi, { role: "assistant", content: "So \n" }] };
  const outcome = translate("chat", body, routeTo("messages", { prefill: true }));
  assert.ok(!isRefusal(outcome));
  const { messages } = JSON.parse(new TextDecoder().decode(outcome.body));
  assert.deepEqual(messages[1], { role: "assistant", content: [{ type: "text", text: "So" }] });
});
