/**
 * ARCHITECTURE.md promise 9: a member that has a meaning and is left out is named; a strict request is refused instead.
 * The rules are those of docs/translation-rules.md.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate, upstreamBody } from "./translate.ts";

type Row = readonly [
  rule: string,
  from: Protocol,
  to: Protocol,
  members: Body,
  dropped: readonly string[],
  capabilities?: Partial<Capabilities>,
];

const search = { type: "web_search_20250305", name: "web_search" };
const own = { name: "f", input_schema: { type: "object" } };
const fn = { type: "function", name: "f", parameters: null };

/** A search with members that chat does not have. */
const webSearch = { type: "web_search", filters: {}, external_web_access: true, search_content_types: ["text"] };
const SEARCH_LOST = ["tools.filters", "tools.external_web_access", "tools.search_content_types"];

const CHAT_SCHEMA = "response_format.json_schema.schema";

/** The response format of a chat and of a responses client, for an object with this property. */
const chatFormat = (property: Body, more: Body = CLOSED) => ({
  response_format: { type: "json_schema", json_schema: { schema: objectWith(property, more) } },
});
const chatStrict = (strict: boolean) => ({
  response_format: { type: "json_schema", json_schema: { strict, schema: { type: "string" } } },
});
const textFormat = (property: Body) => ({ text: { format: { type: "json_schema", schema: objectWith(property) } } });
const objectWith = (property: Body, more: Body = CLOSED) => ({ type: "object", properties: { a: property }, ...more });
const CLOSED: Body = { additionalProperties: false };
const map = { type: "object", additionalProperties: { type: "integer" } };

const BUDGET = { thinking: "budget" } as const;
const forced = { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "required" };

const ROWS: readonly Row[] = [
  ["rule 23 lowered", "chat", "messages", { temperature: 1.7 }, ["temperature"]],
  ["rule 23 default", "chat", "messages", { temperature: 1, top_p: 0.5 }, []],
  ["rule 27 forced", "chat", "messages", { reasoning_effort: "high", ...forced }, ["reasoning_effort"], BUDGET],
  ["rule 27 no room", "chat", "messages", { reasoning_effort: "low", max_tokens: 90 }, ["reasoning_effort"], BUDGET],
  ["rule 27 less", "chat", "messages", { reasoning_effort: "xhigh", max_tokens: 3000 }, ["reasoning_effort"], BUDGET],
  ["rule 27 same effort", "chat", "messages", { reasoning_effort: "high", max_tokens: 20_000 }, [], BUDGET],
  ["rule 27 tokens", "chat", "messages", { thinking_budget: 5000, max_tokens: 5500 }, ["thinking_budget"], BUDGET],
  ["rule 26 closed", "chat", "messages", chatFormat({ type: "string" }), []],
  ["rule 26 not mentioned", "chat", "messages", chatFormat({ type: "string" }, {}), []],
  ["rule 26 open", "chat", "messages", chatFormat({}, { additionalProperties: true }), [CHAT_SCHEMA]],
  ["rule 26 described", "chat", "messages", chatFormat({ type: "integer", minimum: 3 }), [CHAT_SCHEMA]],
  ["rule 26 described", "responses", "messages", textFormat({ items: { pattern: "x" } }), ["text.format.schema"]],
  ["rule 26 map", "chat", "messages", chatFormat(map), ["response_format"]],
  ["rule 26 map", "responses", "messages", textFormat({ anyOf: [{ type: ["object", "null"] }] }), ["text.format"]],
  ["rule 31", "chat", "messages", { seed: 1, prediction: { type: "content", content: "x" } }, ["seed", "prediction"]],
  ["rule 31", "chat", "messages", { frequency_penalty: 1, logit_bias: { 5: 1 } }, ["frequency_penalty", "logit_bias"]],
  ["rule 31 neutral values", "chat", "messages", { frequency_penalty: 0, presence_penalty: 0, logit_bias: {} }, []],
  ["rule 31 hints", "chat", "messages", { store: true, metadata: { a: "b" }, prompt_cache_key: "k" }, []],
  ["rule 31", "chat", "messages", { verbosity: "low" }, ["verbosity"]],
  ["rule 28", "chat", "messages", { service_tier: "flex" }, ["service_tier"]],
  ["rule 28", "chat", "messages", { service_tier: "auto" }, []],
  ["rule 26", "chat", "messages", { response_format: { type: "json_object" } }, ["response_format"]],
  ["rule 27", "chat", "messages", { reasoning_effort: "high" }, ["reasoning_effort"]],
  ["rule 27 off is not lost", "chat", "messages", { reasoning_effort: "none" }, []],
  ["rule 27", "messages", "chat", { output_config: { effort: "high" } }, ["output_config.effort"], { efforts: [] }],
  ["rule 31", "chat", "responses", { seed: 1, presence_penalty: 0.5 }, ["seed", "presence_penalty"]],
  ["rule 28", "chat", "responses", { moderation: { model: "m" } }, ["moderation"]],
  ["rule 28 native", "chat", "responses", { moderation: { model: "m" } }, [], { openaiNative: true }],
  ["rule 23", "messages", "chat", { top_k: 5 }, ["top_k"]],
  ["rule 23", "messages", "chat", { temperature: 0.5, top_p: 0.5 }, ["temperature", "top_p"], { sampling: "none" }],
  ["rule 23 neutral values", "messages", "chat", { temperature: 1, top_p: 1 }, [], { sampling: "none" }],
  ["rule 31", "messages", "chat", { speed: "fast", fallbacks: [{ model: "x" }] }, ["fallbacks", "speed"]],
  ["rule 31 hints", "messages", "chat", { speed: "standard", diagnostics: {}, cache_control: {} }, []],
  [
    "rule 26",
    "messages",
    "chat",
    { output_config: { format: { type: "json_schema", schema: {} } } },
    ["output_config.format"],
    { structuredOutputs: false },
  ],
  ["rule 33 hosted", "messages", "chat", { tools: [own, search] }, ["tools.web_search"]],
  [
    "rule 31",
    "responses",
    "chat",
    { truncation: "auto", context_management: [{}] },
    ["context_management", "truncation"],
  ],
  ["rule 31 hints", "responses", "chat", { store: true, client_metadata: {}, max_tool_calls: 3 }, []],
  ["rule 26 bound loosely", "chat", "messages", chatStrict(false), ["response_format.json_schema.strict"]],
  ["rule 26 bound", "chat", "messages", chatStrict(true), []],
  ["rule 28 flex", "responses", "chat", { service_tier: "flex" }, ["service_tier"]],
  ["rule 28 default", "responses", "chat", { service_tier: "default" }, []],
  ["rule 33 search", "responses", "chat", { tools: [webSearch] }, SEARCH_LOST, { openaiNative: true }],
  ["rule 28", "responses", "messages", { text: { verbosity: "high" } }, ["text.verbosity"]],
  ["rule 33 hosted", "responses", "messages", { tools: [fn, { type: "mcp", server_label: "x" }] }, ["tools.mcp"]],
];

test("rule 23: the default temperature is left out in favour of top_p", () => {
  const body = { messages: [{ role: "user", content: "hi" }], temperature: 1, top_p: 0.5 };
  const { temperature, top_p } = upstreamBody("chat", body, routeTo("messages"));
  assert.deepEqual({ temperature, top_p }, { temperature: undefined, top_p: 0.5 });
});

test("rule 26: a format's description comes before the description of its schema", () => {
  const format = { type: "json_schema", description: "Outer.", schema: { type: "string", description: "Inner." } };
  const sent = upstreamBody("responses", { input: "hi", text: { format } }, routeTo("messages"));
  assert.match(JSON.stringify(sent.output_config), /Outer\.\\n\\nInner\./);
  const same = { ...format, schema: { type: "string", description: "Outer." } };
  const once = upstreamBody("responses", { input: "hi", text: { format: same } }, routeTo("messages"));
  assert.equal(JSON.stringify(once.output_config).match(/Outer/g)?.length, 1);
});

test("rule 18: a document's title is sent with its blocks or its address", () => {
  const sent = (source: Body, to: Protocol) => {
    const messages = [{ role: "user", content: [{ type: "document", title: "Report", source }] }];
    return JSON.stringify(upstreamBody("messages", { max_tokens: 100, messages }, routeTo(to)));
  };
  const content = { type: "content", content: "Body." };
  assert.match(sent(content, "chat"), /Report.*Body/);
  assert.match(sent(content, "responses"), /Report.*Body/);
  const url = { type: "url", url: "https://files.example/a.pdf" };
  assert.match(sent(url, "responses"), /"filename":"Report"/);
});

test("rule 18: file data that is not a data URL is refused, and not sent as an address", () => {
  const file = { file_data: "JVBERi0xLjQ=", filename: "a.pdf" };
  const body = { messages: [{ role: "user", content: [{ type: "file", file }] }] };
  const refused = translate("chat", body, routeTo("messages"));
  assert.ok(isRefusal(refused));
  assert.equal(refused.cause, "wrong_type");
});

test("rule 26: the schema of a map is sent as system text, because its closed form would allow only an empty object", () => {
  const body = { messages: [{ role: "user", content: "hi" }], ...chatFormat(map) };
  const sent = upstreamBody("chat", body, routeTo("messages"));
  assert.equal(sent.output_config, undefined);
  assert.match(JSON.stringify(sent.system), /additionalProperties.{5,9}type.{5}integer/);
});

for (const [rule, from, to, members, dropped, capabilities] of ROWS) {
  const conversation = from === "responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
  const body = { max_tokens: from === "messages" ? 100 : undefined, ...conversation, ...members };
  const route = routeTo(to, capabilities);
  test(`${rule}, ${from} to ${to}: of ${Object.keys(members).join(", ")}, ${dropped.join(", ") || "nothing"} is named as dropped`, () => {
    const lenient = translate(from, body, route);
    assert.ok(!isRefusal(lenient));
    assert.deepEqual(lenient.dropped, dropped);

    const strict = translate(from, body, route, { outputLimit: undefined, strict: true });
    assert.equal(isRefusal(strict), dropped.length > 0);
    if (!isRefusal(strict)) return;
    assert.equal(strict.cause, "untranslatable");
    assert.ok(dropped.some((name) => strict.facts.param?.startsWith(name.split(".")[0] ?? name)));
  });
}
