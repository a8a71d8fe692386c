import assert from "node:assert/strict";
import test from "node:test";
import { type ReadBody, readEnvelope } from "../../src/accept/envelope.ts";
import { isRefusal, type Refusal } from "../../src/values/errors.ts";
import type { Protocol } from "../../src/values/protocol.ts";

const MESSAGE = { role: "user", content: "hi" };
const CHAT = { model: "m", messages: [MESSAGE] };
const MESSAGES = { model: "m", max_tokens: 10, messages: [MESSAGE] };
const RESPONSES = { model: "m", input: "hi" };
const BASE: Readonly<Record<Protocol, object>> = { chat: CHAT, messages: MESSAGES, responses: RESPONSES };

function read(protocol: Protocol, body: object | string): ReadBody | Refusal {
  return readEnvelope(protocol, Buffer.from(typeof body === "string" ? body : JSON.stringify(body)));
}

function envelope(protocol: Protocol, more: object = {}) {
  const found = read(protocol, { ...BASE[protocol], ...more });
  assert.ok(!isRefusal(found), JSON.stringify(found));
  return found.envelope;
}

function fault(protocol: Protocol, body: object | string): string {
  const found = read(protocol, body);
  assert.ok(isRefusal(found), "a refusal");
  return found.facts.param === undefined ? found.cause : `${found.cause} ${found.facts.param}`;
}

/** Row, protocol, body, refusal. */
const REFUSED: readonly (readonly [string, Protocol, object | string, string])[] = [
  ["row 44", "chat", "[".repeat(5_000_000), "not_json"],
  ["row 44", "chat", `{"messages":${"[".repeat(5_000)}${"]".repeat(5_000)},"model":"m"}`, "not_json"],
  ["row 44", "chat", '{"a":'.repeat(1_000_000), "not_json"],
  ["row 45", "chat", `{"model":"m","messages":[${"{},".repeat(1_000_000)}{}]}`, "body_too_large"],
  ["row 47", "chat", '{"model":"cheap","model":"dear","messages":[]}', "duplicate_field model"],
  ["row 47", "chat", '{"model":"cheap","mod\\u0065l":"dear","messages":[]}', "duplicate_field model"],
  ["row 49", "chat", { ...CHAT, max_tokens: -1 }, "wrong_type max_tokens"],
  ["row 49", "chat", { ...CHAT, max_tokens: 0 }, "wrong_type max_tokens"],
  ["row 49", "chat", { ...CHAT, max_tokens: 1.5 }, "wrong_type max_tokens"],
  ["row 49", "chat", '{"model":"m","messages":[],"max_tokens":1e400}', "wrong_type max_tokens"],
  ["row 49", "chat", { ...CHAT, max_completion_tokens: "100" }, "wrong_type max_completion_tokens"],
  ["row 49", "chat", { ...CHAT, max_tokens: 2 ** 53 }, "wrong_type max_tokens"],
  ["row 49", "chat", '{"model":"m","messages":[],"max_tokens":NaN}', "not_json"],
  ["row 49", "responses", { ...RESPONSES, max_output_tokens: 0 }, "wrong_type max_output_tokens"],
  ["row 49", "messages", { ...MESSAGES, max_tokens: -1 }, "wrong_type max_tokens"],
  ["row 49", "messages", { ...MESSAGES, max_tokens: null }, "wrong_type max_tokens"],
  ["row 56", "messages", { model: "m", messages: [] }, "missing_field max_tokens"],
  ["row 56", "chat", RESPONSES, "wrong_protocol input"],
  ["row 56", "responses", CHAT, "wrong_protocol messages"],
  ["row 56", "messages", RESPONSES, "wrong_protocol input"],
  ["row 56", "messages", { ...CHAT, max_completion_tokens: 5 }, "wrong_protocol max_completion_tokens"],
  ["row 33", "chat", { ...CHAT, model: null }, "wrong_type model"],
  ["row 33", "chat", { ...CHAT, model: ["m"] }, "wrong_type model"],
  ["row 33", "chat", { ...CHAT, model: "" }, "wrong_type model"],
  ["a missing model", "chat", { messages: [] }, "missing_field model"],
  ["messages as text", "chat", { model: "m", messages: "hi" }, "wrong_type messages"],
  ["input as object", "responses", { model: "m", input: {} }, "wrong_type input"],
  ["stream as text", "chat", { ...CHAT, stream: "true" }, "wrong_type stream"],
  ["n 0", "chat", { ...CHAT, n: 0 }, "wrong_type n"],
  ["n of a fraction", "chat", { ...CHAT, n: 1.5 }, "wrong_type n"],
  ["n without bound", "chat", { ...CHAT, n: 1_000_000 }, "wrong_type n"],
  ["a tier that is no text", "chat", { ...CHAT, service_tier: ["priority"] }, "wrong_type service_tier"],
  ["an array", "chat", "[]", "not_json"],
  ["nothing", "chat", "", "not_json"],
];

for (const [name, protocol, body, expected] of REFUSED) {
  const shown = typeof body === "string" ? body.slice(0, 60) : JSON.stringify(body);
  test(`${name}: ${shown} on ${protocol} is ${expected}`, () => {
    assert.equal(fault(protocol, body), expected);
  });
}

test("row 46: 50,000 integer-like names are read in bounded time", () => {
  const names = Array.from({ length: 50_000 }, (_, i) => `"${i * 65_536}":0`).join(",");
  const found = read("chat", `{"model":"m","messages":[],"metadata":{${names}}}`);
  assert.ok(!isRefusal(found));
});

test("row 48: names of prototypes are data", () => {
  const found = read(
    "chat",
    '{"model":"m","messages":[],"__proto__":{"stream":true},"constructor":{"prototype":{"n":5}}}',
  );
  assert.ok(!isRefusal(found));
  assert.equal(found.envelope.stream, false);
  assert.equal(({} as { stream?: boolean }).stream, undefined);
});

test("row 56: routing fields of other gateways mean nothing", () => {
  const foreign = {
    api_base: "http://evil",
    base_url: "http://evil",
    api_key: "sk-x",
    user_config: {},
    mock_response: "x",
  };
  assert.deepEqual({ ...envelope("chat", foreign), textBytes: 0 }, { ...envelope("chat"), textBytes: 0 });
});

test("row 49: the limit is the first that is present, and messages may warm a cache with 0", () => {
  assert.deepEqual(envelope("chat", { max_tokens: 5, max_completion_tokens: 7 }).limit, {
    field: "max_completion_tokens",
    value: 7,
  });
  assert.deepEqual(envelope("chat", { max_tokens: 5, max_completion_tokens: null }).limit, {
    field: "max_tokens",
    value: 5,
  });
  assert.equal(envelope("chat").limit, undefined);
  assert.deepEqual(envelope("messages", { max_tokens: 0 }).limit, { field: "max_tokens", value: 0 });
  assert.deepEqual(envelope("responses", { max_output_tokens: 16 }).limit, { field: "max_output_tokens", value: 16 });
});

test("null is absent, and usage and choices belong to chat", () => {
  const plain = envelope("chat", { stream: null, n: null, service_tier: null });
  assert.deepEqual([plain.stream, plain.choices, plain.serviceTier, plain.includeUsage], [false, 1, undefined, false]);
  const asked = envelope("chat", { stream: true, n: 3, stream_options: { include_usage: true } });
  assert.deepEqual([asked.stream, asked.choices, asked.includeUsage], [true, 3, true]);
  assert.equal(envelope("responses", { n: 3 }).choices, 1);
});

test("media counts by the piece, and its base64 is no text", () => {
  const data = "A".repeat(10_000);
  const url = `data:image/png;base64,${data}`;
  const chat = envelope("chat", {
    messages: [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url } },
          { type: "image_url", image_url: { url: "https://x.test/a.png" } },
          { type: "input_audio", input_audio: { data, format: "wav" } },
          { type: "file", file: { file_data: `data:application/pdf;base64,${data}` } },
        ],
      },
    ],
  });
  assert.deepEqual([chat.images, chat.files], [2, 2]);
  assert.ok(chat.textBytes < 1_000);
  const source = { type: "base64", media_type: "image/png", data };
  const messages = envelope("messages", {
    messages: [
      { role: "user", content: [{ type: "image", source }] },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            content: [
              { type: "image", source },
              { type: "document", source },
            ],
          },
        ],
      },
      { role: "user", content: [{ type: "document", source: { type: "text", data } }] },
    ],
  });
  assert.deepEqual([messages.images, messages.files], [2, 2]);
  assert.ok(messages.textBytes > 10_000 && messages.textBytes < 11_000, "a document that is text counts as text");
  const responses = envelope("responses", {
    input: [
      {
        role: "user",
        content: [
          { type: "input_image", image_url: url },
          { type: "input_file", file_data: data },
        ],
      },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_image", image_url: url }] },
    ],
  });
  assert.deepEqual([responses.images, responses.files], [2, 1]);
  assert.ok(responses.textBytes < 1_000);
});

test("text that pretends to be media stays text", () => {
  const text = "these are words ".repeat(1_000);
  const image = envelope("chat", {
    messages: [{ content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${text}` } }] }],
  });
  assert.ok(image.textBytes > text.length);
});

test("row 59: 20 MB of base64 are looked at in linear time", () => {
  const found = envelope("chat", {
    messages: [
      { content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(20_000_000)}!` } }] },
    ],
  });
  assert.ok(found.textBytes > 20_000_000);
});

test("promise 14: tiers, speed and hosted tools are named; the client's own tools are not", () => {
  for (const tier of ["auto", "default", "standard_only"])
    assert.equal(envelope("chat", { service_tier: tier }).serviceTier, undefined);
  assert.equal(envelope("chat", { service_tier: "priority" }).serviceTier, "priority");
  assert.equal(envelope("messages", { speed: "fast" }).serviceTier, "fast");
  assert.equal(envelope("messages", { speed: "standard" }).serviceTier, undefined);
  const own = ["function", "custom", "local_shell", "shell", "apply_patch"].map((type) => ({ type, name: "a" }));
  const tools = [
    ...own,
    { type: "tool_search", execution: "client" },
    { type: "namespace", tools: [{ type: "function" }] },
  ];
  assert.deepEqual(envelope("responses", { tools }).hostedTools, []);
  const hosted = [
    "web_search_preview",
    "file_search",
    "code_interpreter",
    "image_generation",
    "mcp",
    "computer_use_preview",
  ];
  assert.deepEqual(envelope("responses", { tools: hosted.map((type) => ({ type })) }).hostedTools, hosted);
  const nested = [{ type: "additional_tools", tools: [{ type: "namespace", tools: [{ type: "web_search" }] }] }];
  assert.deepEqual(envelope("responses", { input: nested }).hostedTools, ["web_search"]);
  const client = ["bash_20250124", "text_editor_20250728", "memory_20250818", "custom"].map((type) => ({ type }));
  assert.deepEqual(envelope("messages", { tools: [...client, { name: "untyped" }] }).hostedTools, []);
  const server = ["web_search_20250305", "web_fetch_20250910", "code_execution_20250825"].map((type) => ({ type }));
  assert.deepEqual(
    envelope("messages", { tools: server }).hostedTools,
    server.map((tool) => tool.type),
  );
  assert.deepEqual(envelope("chat", { web_search_options: {} }).hostedTools, ["web_search_options"]);
});
