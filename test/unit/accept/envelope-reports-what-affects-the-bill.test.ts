import assert from "node:assert/strict";
import test from "node:test";
import { type ReadBody, readEnvelope } from "../../../src/accept/envelope.ts";
import { answerOf, isRefusal, type Refusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";

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

/** Case, protocol, body, refusal. */
const REFUSED: readonly (readonly [string, Protocol, object | string, string])[] = [
  ["promise 14", "responses", { model: "m", input: [{ ID: "rs_1" }] }, "unsupported_parameter input[].ID"],
  ["promise 14", "responses", { model: "m", input: [{ "i-d": "rs_1" }] }, "unsupported_parameter input[].i-d"],
  [
    "promise 14",
    "responses",
    { model: "m", input: [{ type: "mcp_approval_response", approvalRequestId: "a" }] },
    "unsupported_parameter input[].approvalRequestId",
  ],
  [
    "promise 14",
    "chat",
    '{"model":"m","messages":[],"search_parameters":{"mode":"on","mode":"off"}}',
    "duplicate_field search_parameters.mode",
  ],
  [
    "promise 14",
    "chat",
    { ...CHAT, search_parameters: { mode: "off", Mode: "on" } },
    "unsupported_parameter search_parameters.Mode",
  ],
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
  ["a limit by another name", "chat", { ...CHAT, n_predict: 9 }, "unsupported_parameter n_predict"],
  ["a limit of another protocol", "responses", { ...RESPONSES, max_tokens: 9 }, "unsupported_parameter max_tokens"],
  ["a name that Go reads as another", "chat", { ...CHAT, Model: "o1-pro" }, "unsupported_parameter Model"],
  ["the same in place of it", "chat", { Model: "m", messages: [] }, "unsupported_parameter Model"],
  ["a limit that Go reads", "chat", { ...CHAT, Max_Tokens: 100_000 }, "unsupported_parameter Max_Tokens"],
  ["choices that Go reads", "chat", { ...CHAT, N: 64 }, "unsupported_parameter N"],
  ["an escaped name", "chat", '{"mod\\u0065l":"m","messages":[]}', "unsupported_parameter model"],
  [
    "a tool's type that Go reads",
    "chat",
    { ...CHAT, tools: [{ Type: "web_search" }] },
    "unsupported_parameter tools.Type",
  ],
  [
    "a type that is given twice",
    "chat",
    '{"model":"m","messages":[],"tools":[{"type":"a","type":"b"}]}',
    "duplicate_field tools.type",
  ],
  [
    "a file that Go reads",
    "responses",
    { ...RESPONSES, input: [{ role: "user", content: [{ type: "input_file", File_Id: "file-1" }] }] },
    "unsupported_parameter content[].File_Id",
  ],
  [
    "a source that Go reads",
    "messages",
    { ...MESSAGES, messages: [{ role: "user", content: [{ type: "image", Source: {} }] }] },
    "unsupported_parameter content[].Source",
  ],
  ["an array", "chat", "[]", "not_json"],
  ["nothing", "chat", "", "not_json"],
];

for (const [name, protocol, body, expected] of REFUSED) {
  const shown = typeof body === "string" ? body.slice(0, 60) : JSON.stringify(body);
  test(`${name}: ${shown} on ${protocol} is ${expected}`, () => {
    assert.equal(fault(protocol, body), expected);
  });
}

test("valid JSON that is not an object is refused with a message that asks for an object", () => {
  for (const body of ["[]", "null", '"text"', "1"]) {
    const { message } = answerOf(read("chat", body) as Refusal);
    assert.match(message, /JSON object/);
    assert.doesNotMatch(message, /not valid JSON/);
  }
});

for (const hidden of ["type", "source", "data"]) {
  test(`"${hidden}" is not hidden by V8's cache of escaped names (nodejs/node#63785)`, () => {
    const escaped = `\\u00${hidden.charCodeAt(0).toString(16)}${hidden.slice(1)}`;
    const mistaken = escaped.slice(0, hidden.length);
    // Any client may have sent this text before. From then on V8 returns the first name instead of the second one.
    JSON.parse(`{"before ${hidden}":0,${JSON.stringify(mistaken)}:0}`);
    const block = `{"before ${hidden}":0,"${escaped}":"document"}`;
    const body = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[${block}]}]}`;
    const found = read("messages", body);
    // A V8 without the bug may accept the name; with the bug the body must be refused.
    const readRight = !isRefusal(found) && JSON.stringify(found.json).includes(`"${hidden}":"document"`);
    assert.ok(readRight || fault("messages", body) === `unsupported_parameter content[].${mistaken}`);
  });
}

test("row 46: 50,000 integer-like names are read in bounded time", () => {
  const names = Array.from({ length: 50_000 }, (_, i) => `"${i * 65_536}":0`).join(",");
  const found = read("chat", `{"model":"m","messages":[],"metadata":{${names}}}`);
  assert.ok(!isRefusal(found));
});

test("row 48: names like __proto__ are plain data", () => {
  const found = read(
    "chat",
    '{"model":"m","messages":[],"__proto__":{"stream":true},"constructor":{"prototype":{"n":5}}}',
  );
  assert.ok(!isRefusal(found));
  assert.equal(found.envelope.stream, false);
  assert.equal(({} as { stream?: boolean }).stream, undefined);
});

test("row 56: routing fields of other gateways have no effect", () => {
  const foreign = {
    api_base: "http://evil",
    base_url: "http://evil",
    api_key: "sk-x",
    user_config: {},
    mock_response: "x",
  };
  const sizes = { bodyBytes: 0, textBytes: 0 };
  assert.deepEqual({ ...envelope("chat", foreign), ...sizes }, { ...envelope("chat"), ...sizes });
  const found = read("chat", { ...CHAT, ...foreign });
  assert.ok(!isRefusal(found));
  assert.deepEqual(found.surplus, Object.keys(foreign));
});

test("row 49: the first limit present counts, and messages may set 0 to warm a cache", () => {
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

test("null counts as absent, and include_usage and n apply to chat only", () => {
  const plain = envelope("chat", { stream: null, n: null, service_tier: null });
  assert.deepEqual([plain.stream, plain.choices, plain.serviceTier, plain.includeUsage], [false, 1, undefined, false]);
  const asked = envelope("chat", { stream: true, n: 3, stream_options: { include_usage: true } });
  assert.deepEqual([asked.stream, asked.choices, asked.includeUsage], [true, 3, true]);
  assert.equal(envelope("responses", { n: 3 }).choices, 1);
});

const kinds = ({ media }: { media: readonly { kind: string }[] }) =>
  ["image", "file"].map((kind) => media.filter((piece) => piece.kind === kind).length);

test("media is counted by the piece, and its base64 is not text", () => {
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
  assert.deepEqual(kinds(chat), [2, 2]);
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
  assert.deepEqual(kinds(messages), [2, 1], "a text document is not a file");
  assert.ok(messages.textBytes > 10_000 && messages.textBytes < 11_000, "a text document counts as text");
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
  assert.deepEqual(kinds(responses), [2, 1]);
  assert.ok(responses.textBytes < 1_000);
});

test("a prediction is reported separately, because its rejected tokens are billed as output", () => {
  const prediction = { type: "content", content: [{ type: "text", text: "é".repeat(1_000) }] };
  const { predictedBytes = 0, textBytes } = envelope("chat", { prediction });
  assert.ok(predictedBytes > 2_000 && predictedBytes < 2_100, `${predictedBytes}`);
  assert.ok(textBytes > predictedBytes, "the prediction counts as input too");
  assert.equal(envelope("chat", { prediction: null }).predictedBytes, 0);
});

test("text in the form of a media URL counts as text", () => {
  const text = "these are words ".repeat(1_000);
  const image = envelope("chat", {
    messages: [{ content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${text}` } }] }],
  });
  assert.ok(image.textBytes > text.length);
});

test("row 59: 20 MB of base64 are scanned in linear time", () => {
  const found = envelope("chat", {
    messages: [
      { content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(20_000_000)}!` } }] },
    ],
  });
  assert.ok(found.textBytes > 20_000_000);
});

test("promise 14: tiers, speed and hosted tools are reported; the client's own tools are not", () => {
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
});

test("promise 14: tools that the client runs are known by type; every other type counts as a hosted tool", () => {
  const chat = ["web_search", "browser_search", "builtin_function", "google_search", "retrieval", "mcp"];
  assert.deepEqual(envelope("chat", { tools: chat.map((type) => ({ type })) }).hostedTools, chat);
  const own = [
    { type: "function", function: { name: "f" } },
    { type: "custom", custom: { name: "c" } },
    { function: {} },
  ];
  assert.deepEqual(envelope("chat", { tools: own }).hostedTools, []);
  assert.deepEqual(envelope("chat", { tools: [{ type: ["web_search"] }] }).hostedTools, ["unknown"]);
  assert.deepEqual(envelope("chat", { tool_choice: { type: "web_search" } }).hostedTools, ["web_search"]);
  const allowed = { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [{ type: "file_search" }] } };
  assert.deepEqual(envelope("chat", { tool_choice: allowed }).hostedTools, ["file_search"]);
  // Some servers read tools from a message.
  assert.deepEqual(envelope("chat", { messages: [{ role: "system", tools: [{ type: "search" }] }] }).hostedTools, [
    "search",
  ]);
  // Runs another model, at its own price.
  const advisor = { type: "advisor_20260301", name: "advisor", model: "dear-1" };
  assert.deepEqual(envelope("messages", { tools: [advisor] }).hostedTools, ["advisor_20260301"]);
  const added = {
    type: "tool_addition",
    tool: { type: "tool_definition", definition: { type: "web_fetch_20260318" } },
  };
  const messages = [MESSAGE, { role: "system", content: [added] }];
  assert.deepEqual(envelope("messages", { messages }).hostedTools, ["web_fetch_20260318"]);
  assert.deepEqual(envelope("messages", { tools: [{ type: "tool_search_tool_bm25_20251119" }] }).hostedTools, []);
  const shells = [
    { type: "shell", environment: { type: "local" } },
    { type: "shell", environment: { type: "container_auto" } },
  ];
  assert.deepEqual(envelope("responses", { tools: shells }).hostedTools, ["shell"]);
  const elsewhere = [
    { type: "container_reference", container_id: "c" },
    "container_auto",
    { type: "Container_auto" },
    {},
  ];
  for (const environment of elsewhere) {
    assert.deepEqual(envelope("responses", { tools: [{ type: "shell", environment }] }).hostedTools, ["shell"]);
  }
  for (const environment of [undefined, null, { type: "local" }]) {
    assert.deepEqual(envelope("responses", { tools: [{ type: "shell", environment }] }).hostedTools, []);
  }
  const found = [{ type: "tool_search_output", call_id: "c", tools: [{ type: "mcp", server_label: "x" }] }];
  assert.deepEqual(envelope("responses", { input: found }).hostedTools, ["mcp"]);
});

test("promise 14: a tool search counts as the client's own only if the request says that the client executes it", () => {
  const hosted = (execution?: unknown) =>
    envelope("responses", { tools: [{ type: "tool_search", execution }] }).hostedTools;
  assert.deepEqual(hosted("client"), []);
  for (const execution of ["server", undefined, null, "Client", true]) {
    assert.deepEqual(hosted(execution), ["tool_search"], String(execution));
  }
});

test("promise 14: all that changes the price becomes one tier, with the member that asks for it", () => {
  const tier = (protocol: Protocol, more: object) => {
    const { serviceTier, tierParam } = envelope(protocol, more);
    return [serviceTier, tierParam];
  };
  assert.deepEqual(tier("messages", { inference_geo: "us" }), ["us", "inference_geo"]);
  assert.deepEqual(tier("messages", { inference_geo: "global", speed: "standard" }), [undefined, undefined]);
  assert.deepEqual(tier("messages", { speed: "fast", inference_geo: "us" }), ["fast+us", "speed"]);
  assert.deepEqual(tier("chat", { modalities: ["text"] }), [undefined, undefined]);
  assert.deepEqual(tier("chat", { modalities: ["text", "audio"], audio: { voice: "a" } }), ["audio", "modalities"]);
  assert.deepEqual(tier("chat", { audio: { voice: "a" } }), ["audio", "audio"]);
  assert.deepEqual(tier("chat", { modalities: ["image", "text"] }), ["image", "modalities"]);
  assert.deepEqual(tier("responses", { reasoning: { mode: "pro" } }), ["pro", "reasoning.mode"]);
  assert.deepEqual(tier("responses", { reasoning: { mode: "standard" } }), [undefined, undefined]);
  assert.equal(fault("chat", { ...CHAT, modalities: "audio" }), "wrong_type modalities");
  assert.equal(fault("messages", { ...MESSAGES, inference_geo: 1 }), "wrong_type inference_geo");
});

test("promise 14: members that buy something are reported, unless their value switches them off", () => {
  const options = (more: object) => envelope("chat", more).options;
  const bought = {
    models: ["o1-pro"],
    route: "fallback",
    plugins: [{ id: "web" }],
    search_parameters: { mode: "on" },
    web_search_options: {},
    best_of: 4,
    enable_search: true,
  };
  assert.deepEqual(options(bought), Object.keys(bought));
  const off = {
    models: [],
    route: null,
    plugins: [],
    search_parameters: { mode: "off" },
    best_of: 1,
    enable_search: false,
    priority: 0,
  };
  assert.deepEqual(options(off), []);
  assert.deepEqual(envelope("responses", { n: 3 }).options, ["n"]);
  const asked = (programs: unknown) => envelope("responses", { access_programs: programs }).options.length === 1;
  for (const off of [{ cyber: "standard" }, {}, [], null]) assert.equal(asked(off), false, JSON.stringify(off));
  for (const on of [{ a: "standard", b: "other" }, true, 1, ["x"], "standard"])
    assert.equal(asked(on), true, JSON.stringify(on));
});

test("functions are tools of the client's own, and the namespaces that contain them are not", () => {
  const own = (tools: object[]) => envelope("responses", { tools }).hasOwnTools;
  const space = (tools: object[]) => [{ type: "namespace", name: "n", tools }];
  const [hosted, mine] = [{ type: "web_search" }, { type: "function", name: "f" }];
  assert.deepEqual([own([hosted]), own(space([hosted])), own(space([]))], [false, false, false]);
  assert.deepEqual([own([mine]), own(space([hosted, mine]))], [true, true]);
});

test("a conversation that the upstream may compact is marked as such", () => {
  const managed = (edits: object[]) => envelope("messages", { context_management: { edits } }).compacts;
  assert.equal(managed([{ type: "clear_thinking_20251015", keep: "all" }]), false);
  assert.equal(managed([{ type: "clear_tool_uses_20250919" }, { type: "compact_20260112" }]), true);
  const responses = envelope("responses", { context_management: [{ type: "compaction", compact_threshold: 1_000 }] });
  assert.equal(responses.compacts, true);
  assert.equal(envelope("messages").compacts, false);
});
