/** Promise 9: what is left out and means something is named; a strict request is refused instead. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../src/values/catalog.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { type Body, routeTo, translate } from "./translate.ts";

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

const ROWS: readonly Row[] = [
  ["CM.q20", "chat", "messages", { seed: 1, prediction: { type: "content", content: "x" } }, ["seed", "prediction"]],
  ["CM.q20", "chat", "messages", { frequency_penalty: 1, logit_bias: { 5: 1 } }, ["frequency_penalty", "logit_bias"]],
  ["CM.q20 neutral values", "chat", "messages", { frequency_penalty: 0, presence_penalty: 0, logit_bias: {} }, []],
  ["CM.q20 hints", "chat", "messages", { store: true, metadata: { a: "b" }, prompt_cache_key: "k" }, []],
  ["CM.q20", "chat", "messages", { verbosity: "low" }, ["verbosity"]],
  ["CM.q18", "chat", "messages", { service_tier: "flex" }, ["service_tier"]],
  ["CM.q18", "chat", "messages", { service_tier: "auto" }, []],
  ["CM.q16", "chat", "messages", { response_format: { type: "json_object" } }, ["response_format"]],
  ["2.0.4", "chat", "messages", { reasoning_effort: "high" }, ["reasoning_effort"]],
  ["2.0.4 off is not lost", "chat", "messages", { reasoning_effort: "none" }, []],
  ["2.0.4", "messages", "chat", { output_config: { effort: "high" } }, ["output_config.effort"], { efforts: [] }],
  ["CR.q15", "chat", "responses", { seed: 1, presence_penalty: 0.5 }, ["seed", "presence_penalty"]],
  ["CR.q13", "chat", "responses", { moderation: { model: "m" } }, ["moderation"]],
  ["CR.q13 native", "chat", "responses", { moderation: { model: "m" } }, [], { openaiNative: true }],
  ["MC.q11", "messages", "chat", { top_k: 5 }, ["top_k"]],
  ["MC.q11", "messages", "chat", { temperature: 0.5, top_p: 0.5 }, ["temperature", "top_p"], { sampling: "none" }],
  ["MC.q11 neutral values", "messages", "chat", { temperature: 1, top_p: 1 }, [], { sampling: "none" }],
  ["MC.q18", "messages", "chat", { speed: "fast", fallbacks: [{ model: "x" }] }, ["fallbacks", "speed"]],
  ["MC.q18 hints", "messages", "chat", { speed: "standard", diagnostics: {}, cache_control: {} }, []],
  [
    "MC.q13",
    "messages",
    "chat",
    { output_config: { format: { type: "json_schema", schema: {} } } },
    ["output_config.format"],
    { structuredOutputs: false },
  ],
  ["2.0.11 hosted", "messages", "chat", { tools: [own, search] }, ["tools.web_search"]],
  [
    "RC.q15",
    "responses",
    "chat",
    { truncation: "auto", context_management: [{}] },
    ["context_management", "truncation"],
  ],
  ["RC.q15 hints", "responses", "chat", { store: true, client_metadata: {}, max_tool_calls: 3 }, []],
  ["RM.q8", "responses", "messages", { text: { verbosity: "high" } }, ["text.verbosity"]],
  ["2.0.11 hosted", "responses", "messages", { tools: [fn, { type: "mcp", server_label: "x" }] }, ["tools.mcp"]],
];

for (const [rule, from, to, members, dropped, capabilities] of ROWS) {
  const conversation = from === "responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
  const body = { max_tokens: from === "messages" ? 100 : undefined, ...conversation, ...members };
  const route = routeTo(to, capabilities);
  test(`${rule}, ${from} to ${to}: ${Object.keys(members).join(", ")} leaves ${dropped.join(", ") || "nothing"}`, () => {
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
