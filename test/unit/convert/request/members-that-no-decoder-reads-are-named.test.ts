/**
 * docs/translation-rules.md rules 2 and 3: a member that no decoder reads is named, at any depth. A member that changes
 * no answer is named separately, and does not make a strict request fail.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import type { Exchange } from "../../../../src/convert/exchange.ts";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal, type Refusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { isJsonFault, scanJson } from "../../../../src/wire/json.ts";
import { type Body, CONTEXT, PERMITTED, routeTo, translate, upstreamBody } from "./translate.ts";

function open(from: Protocol, to: Protocol, members: Body, strict = false): Exchange | Refusal {
  const json = { model: "m", ...(from === "messages" ? { max_tokens: 100 } : {}), ...members };
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const request = { protocol: from, body, json: JSON.parse(body.toString()), scan, model: "m", stream: false };
  return openExchange(request, routeTo(to), { ...PERMITTED, strict }, CONTEXT);
}

const text = (content: unknown) => [{ role: "user", content }];
const ASK = { chat: { messages: text("hi") }, messages: { messages: text("hi") }, responses: { input: "hi" } };

type Row = readonly [client: Protocol, upstream: Protocol, members: Body, header: string, unlisted?: number];

const ROWS: readonly Row[] = [
  [
    "chat",
    "messages",
    { messages: text([{ type: "text", text: "a", zq: 1 }]) },
    "lossy; dropped=messages.content.zq",
    1,
  ],
  ["chat", "responses", { messages: [{ role: "user", content: "a", zq: false }] }, "lossy; dropped=messages.zq", 1],
  ["messages", "chat", { messages: text([{ type: "text", text: "a", zq: {} }]) }, "exact"],
  [
    "messages",
    "chat",
    { messages: text("a"), system: [{ type: "text", text: "b", zq: 1 }] },
    "lossy; dropped=system.zq",
    1,
  ],
  ["responses", "chat", { input: [{ role: "user", content: "a", zq: 1 }] }, "lossy; dropped=input.zq", 1],
  ["responses", "messages", { input: [{ role: "user", content: "a", id: "msg_1" }] }, "exact; ignored=input.id"],
  [
    "chat",
    "messages",
    { messages: text([{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "2h" } }]) },
    "exact; ignored=messages.content.cache_control.ttl",
  ],
  [
    "chat",
    "messages",
    {
      ...ASK.chat,
      tools: [{ type: "function", function: { name: "f", cache_control: { type: "kept", scope: "org" } } }],
    },
    "exact; ignored=tools.function.cache_control.type,tools.function.cache_control.scope",
  ],
  [
    "chat",
    "messages",
    { ...ASK.chat, cache_control: { type: "ephemeral", ttl: "1h", scope: "org" } },
    "exact; ignored=cache_control.scope",
  ],
  [
    "chat",
    "messages",
    { messages: text([{ type: "text", text: "a", cache_control: { type: "ephemeral", ttl: "1h" } }]) },
    "exact",
  ],
  ["chat", "messages", { ...ASK.chat, min_p: 0.1, metadata: { a: "b" } }, "lossy; dropped=min_p; ignored=metadata"],
  ["chat", "messages", { ...ASK.chat, thinking: { type: "enabled" } }, "lossy; dropped=thinking.type"],
  ["chat", "messages", { ...ASK.chat, include_reasoning: false }, "lossy; dropped=include_reasoning"],
  [
    "chat",
    "messages",
    { ...ASK.chat, skip_special_tokens: true, enable_thinking: false },
    "lossy; dropped=skip_special_tokens",
  ],
  [
    "messages",
    "chat",
    { ...ASK.messages, output_config: { task_budget: { type: "tokens", total: 9 } } },
    "lossy; dropped=output_config.task_budget",
  ],
  ["messages", "responses", { ...ASK.messages, fallback_credit_token: "t" }, "lossy; dropped=fallback_credit_token"],
  [
    "messages",
    "chat",
    { ...ASK.messages, metadata: { user_id: "u", foo: "a", bar: null } },
    "exact; ignored=metadata.foo,metadata.user_id",
  ],
  ["messages", "responses", { ...ASK.messages, metadata: { foo: 0 } }, "exact; ignored=metadata.foo"],
  ["responses", "chat", { ...ASK.responses, reasoning: { context: "all_turns" } }, "lossy; dropped=reasoning.context"],
  [
    "responses",
    "chat",
    { ...ASK.responses, reasoning: { context: "auto" }, access_programs: { a: "b" } },
    "exact; ignored=access_programs",
  ],
];

for (const [client, upstream, members, header, unlisted = 0] of ROWS) {
  test(`${client} to ${upstream}: ${JSON.stringify(members).slice(0, 90)} is reported as ${header}`, () => {
    const exchange = open(client, upstream, members);
    assert.ok(!isRefusal(exchange));
    assert.equal(exchange.translation, header);
    assert.equal(exchange.request.unlisted, unlisted);

    const strict = open(client, upstream, members, true);
    assert.equal(isRefusal(strict), header.startsWith("lossy"));
  });
}

test("the names of a hostile body are limited in number and escaped in the header", () => {
  const part = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`x\r\n${at}`, at]));
  const hostile = { type: "text", text: "a", constructor: 1, ...part };
  const exchange = open("chat", "messages", { messages: text([hostile]) });
  assert.ok(!isRefusal(exchange));
  assert.match(
    exchange.translation ?? "",
    /^lossy; dropped=messages\.content\.constructor,(messages\.content\.x__\d+,){19}\+80$/,
  );
});

test("a request whose answer would only be a summary is refused", () => {
  const refused = open("messages", "chat", { ...ASK.messages, compaction: { type: "summarize" } });
  assert.ok(isRefusal(refused));
  assert.deepEqual([refused.cause, refused.facts.param], ["unsupported_parameter", "compaction"]);
});

const CACHED = { type: "ephemeral", ttl: "1h" };

test("a chat client's cache marks reach messages in either spelling, and the mark of the body is one of the four", () => {
  const parts = ["a", "b", "c"].map((one) => ({ type: "text", text: one, cache_control: { type: "ephemeral" } }));
  const tools = [{ type: "function", function: { name: "f" }, cache_control: CACHED }];
  const body = upstreamBody("chat", { messages: text(parts), tools, cache_control: CACHED }, routeTo("messages"));
  assert.deepEqual(body.cache_control, CACHED);
  const marked = JSON.stringify([body.tools, body.messages]).match(/"cache_control"/g);
  assert.equal(marked?.length, 3);
  assert.ok(
    !JSON.stringify(body.tools).includes("cache_control"),
    "the first of four markers is removed in favour of that of the body",
  );
});

const NATIVE: Partial<Capabilities> = { openaiNative: true };

test("a breakpoint keeps its lifetime between chat and responses", () => {
  const mark = { mode: "explicit", ttl: "30m" };
  const chat = text([{ type: "text", text: "a", prompt_cache_breakpoint: mark }]);
  const there = upstreamBody("chat", { messages: chat }, routeTo("responses", NATIVE));
  assert.ok(JSON.stringify(there.input).includes(JSON.stringify(mark)));
  const back = upstreamBody("responses", { input: there.input }, routeTo("chat", NATIVE));
  assert.deepEqual(back.messages, chat);
});

test("a breakpoint that chat cannot carry is named, whatever part it is on", () => {
  const mark = { prompt_cache_breakpoint: { mode: "explicit" } };
  for (const part of [
    { type: "input_text", text: "a" },
    { type: "input_image", image_url: "https://a.test/a.png" },
  ]) {
    const input = [{ role: "user", content: [{ ...part, ...mark }] }];
    const encoded = translate("responses", { input }, routeTo("chat"));
    assert.ok(!isRefusal(encoded));
    assert.deepEqual(encoded.ignored, ["input.content.prompt_cache_breakpoint"]);
  }
});

test("top_k reaches messages, except for 0 and -1, which mean no limit", () => {
  for (const [told, sent] of [
    [5, 5],
    [0, undefined],
    [-1, undefined],
  ] as const) {
    assert.equal(upstreamBody("chat", { ...ASK.chat, top_k: told }, routeTo("messages")).top_k, sent);
  }
});

test("text before a call is commentary to the vendor of responses, and other text is the final answer", () => {
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const messages = [
    { role: "user", content: "a" },
    { role: "assistant", content: "I look.", tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content: "1" },
    { role: "assistant", content: "It is 1." },
    { role: "user", content: "b" },
  ];
  const phases = (capabilities: Partial<Capabilities>) => {
    const { input } = upstreamBody("chat", { messages }, routeTo("responses", capabilities));
    return (input as Body[]).filter(({ role }) => role === "assistant").map(({ phase }) => phase);
  };
  assert.deepEqual(phases(NATIVE), ["commentary", "final_answer"]);
  assert.deepEqual(phases({}), [undefined, undefined], "other servers may refuse unknown members");
});

test("an effort that is lowered is named, and one that the model has is not", () => {
  const effort = (told: string) => open("responses", "chat", { ...ASK.responses, reasoning: { effort: told } });
  const [xhigh, high] = [effort("xhigh"), effort("high")];
  assert.ok(!isRefusal(xhigh) && !isRefusal(high));
  assert.deepEqual([xhigh.translation, high.translation], ["lossy; dropped=reasoning.effort", "exact"]);
});

test("strict is named if messages cannot bind its model to the schema", () => {
  const tools = (parameters: Body) => [{ type: "function", function: { name: "f", parameters, strict: true } }];
  const closed = { type: "object", properties: {}, additionalProperties: false };
  const [open_, shut] = [{ type: "object" }, closed].map((schema) =>
    open("chat", "messages", { ...ASK.chat, tools: tools(schema) }),
  );
  assert.ok(open_ && !isRefusal(open_) && shut && !isRefusal(shut));
  assert.deepEqual([open_.translation, shut.translation], ["lossy; dropped=tools.function.strict", "exact"]);
});
