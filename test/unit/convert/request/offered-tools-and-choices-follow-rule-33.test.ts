/** docs/translation-rules.md rule 33: which tools the upstream gets, in which form, and which it must use. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type Body, routeTo, translate, upstreamBody } from "./translate.ts";

const own = { type: "function", name: "f", parameters: { type: "object", properties: {} } };
const chatOwn = { type: "function", function: { name: "f" } };
const mOwn = { name: "f", input_schema: { type: "object" } };

function body(from: Protocol, members: Body): Body {
  if (from === "responses") return { input: "hi", ...members };
  return { messages: [{ role: "user", content: "hi" }], max_tokens: 99, ...members };
}

const FORCED: readonly (readonly [Protocol, Body])[] = [
  ["chat", { tools: [chatOwn], tool_choice: "required" }],
  ["chat", { tools: [chatOwn], tool_choice: { type: "function", function: { name: "f" } } }],
  ["messages", { tools: [mOwn], tool_choice: { type: "any" } }],
  ["messages", { tools: [mOwn], tool_choice: { type: "tool", name: "f" } }],
  ["responses", { tools: [own], tool_choice: { type: "function", name: "f" } }],
  ["responses", { tools: [own], tool_choice: { type: "allowed_tools", mode: "required", tools: [own] } }],
];

for (const [from, members] of FORCED) {
  const choice = JSON.stringify(members.tool_choice);
  test(`${from} ${choice} is refused if a tool cannot be forced or is not offered`, () => {
    for (const to of ["chat", "messages", "responses"] as const) {
      if (to === from) continue;
      assertRefused(from, to, members, "tool_choice", { forcedToolChoice: false });
      assertRefused(from, to, { ...members, tools: [] }, "tool_choice");
    }
  });
}

function assertRefused(
  from: Protocol,
  to: Protocol,
  members: Body,
  param: string,
  able: Partial<Capabilities> = {},
): void {
  const outcome = translate(from, body(from, members), routeTo(to, able));
  assert.ok(isRefusal(outcome), `${from} to ${to} was not refused`);
  assert.equal(outcome.facts.param, param);
}

test("functions next to tools are offered as tools; alone, or with an empty list of tools, they get the deprecated form", () => {
  const members = { tools: [chatOwn], functions: [{ name: "g", parameters: { type: "object", properties: {} } }] };
  for (const to of ["messages", "responses"] as const) {
    const sent = upstreamBody("chat", body("chat", members), routeTo(to));
    assert.deepEqual(
      (sent.tools as { name: string }[]).map((tool) => tool.name),
      ["f", "g"],
    );
    const inKind = [members, { ...members, tools: [] }, { functions: members.functions }].map((given) => {
      const outcome = translate("chat", body("chat", given), routeTo(to));
      return !isRefusal(outcome) && outcome.plan.deprecatedFunctions;
    });
    assert.deepEqual(inKind, [false, true, true]);
  }
});

test("a function_call that agrees with tool_choice, or comes with tools alone, is used", () => {
  const tool_choice = { type: "function", function: { name: "f" } };
  for (const choice of [{ tool_choice }, {}]) {
    const members = { tools: [chatOwn], function_call: { name: "f" }, ...choice };
    const sent = upstreamBody("chat", body("chat", members), routeTo("messages"));
    assert.deepEqual(sent.tool_choice, { type: "tool", name: "f" });
  }
});

const doubled = (one: object, description: string) => ({ ...one, description });
const DOUBLED: readonly (readonly [Protocol, Protocol, Body, string])[] = [
  [
    "chat",
    "messages",
    { tools: [chatOwn, { type: "function", function: doubled(chatOwn.function, "x") }] },
    "tools[1].function.name",
  ],
  ["chat", "responses", { tools: [chatOwn], functions: [doubled(chatOwn.function, "x")] }, "functions[0].name"],
  ["chat", "messages", { tools: [chatOwn, { type: "custom", custom: { name: "f" } }] }, "tools[1].custom.name"],
  ["messages", "chat", { tools: [mOwn, doubled(mOwn, "x")] }, "tools.1.name"],
  ["responses", "chat", { tools: [own, doubled(own, "x")] }, "tools[1].name"],
];

for (const [from, to, members, param] of DOUBLED) {
  test(`${from} to ${to}: two tools of one name are refused at ${param}`, () => {
    assertRefused(from, to, members, param);
  });
}

test("a tool that is sent twice is offered once", () => {
  const sent = upstreamBody("messages", body("messages", { tools: [mOwn, { ...mOwn }] }), routeTo("chat"));
  assert.equal((sent.tools as unknown[]).length, 1);
});

test("another tool of the same name that an item adds later is left out and named", () => {
  const item = { type: "additional_tools", role: "developer", tools: [doubled(own, "newer")] };
  const members = { tools: [own], input: [{ role: "user", content: "hi" }, item] };
  const outcome = translate("responses", members, routeTo("chat"));
  assert.ok(!isRefusal(outcome));
  assert.deepEqual(outcome.dropped, ["input.tools"]);
  const strict = translate("responses", members, routeTo("chat"), { outputLimit: undefined, strict: true });
  assert.ok(isRefusal(strict));
  assert.equal(strict.facts.param, "input[1].tools[0]");
});

test("a named tool that is not among the tools is refused", () => {
  assertRefused(
    "chat",
    "messages",
    { tools: [chatOwn], tool_choice: { type: "function", function: { name: "g" } } },
    "tool_choice",
  );
});

const HOSTED: readonly (readonly [Protocol, Protocol, object, string])[] = [
  ["messages", "chat", { type: "web_search_20250305", name: "web_search" }, "tools.0.type"],
  ["messages", "responses", { type: "web_search_20250305", name: "web_search" }, "tools.0.type"],
  ["messages", "responses", { type: "computer_toolset_20260801" }, "tools.0.type"],
  ["responses", "messages", { type: "code_interpreter", container: { type: "auto" } }, "tools[0].type"],
  ["responses", "chat", { type: "tool_search", execution: "server" }, "tools[0].type"],
  ["responses", "chat", { type: "shell", environment: { type: "container_auto" } }, "tools[0].type"],
];

for (const [from, to, hosted, param] of HOSTED) {
  const mine = from === "messages" ? mOwn : own;
  test(`${from} to ${to}: ${(hosted as { type: string }).type} is refused alone or if forced, and dropped next to other tools`, () => {
    assertRefused(from, to, { tools: [hosted] }, param);
    const sent = upstreamBody(from, body(from, { tools: [hosted, mine] }), routeTo(to));
    assert.equal((sent.tools as unknown[]).length, 1);
    const { type, name } = hosted as { type: string; name?: string };
    const forced = from === "messages" ? { type: "tool", name } : { type };
    if (from === "messages" ? name !== undefined : type === "code_interpreter") {
      assertRefused(from, to, { tools: [hosted, mine], tool_choice: forced }, param);
    }
  });
}

test("a web search is carried between the two protocols of its vendor", () => {
  const tools = [{ type: "web_search", user_location: { type: "approximate", city: "Ulm" } }];
  const sent = upstreamBody("responses", body("responses", { tools }), routeTo("chat", { openaiNative: true }));
  assert.deepEqual(sent.web_search_options, { user_location: { type: "approximate", approximate: { city: "Ulm" } } });
});

test("without tools, the choices auto and none are left out", () => {
  for (const tool_choice of ["auto", "none"]) {
    const members = { tools: [], tool_choice, parallel_tool_calls: false };
    for (const to of ["chat", "messages"] as const) {
      const sent = upstreamBody("responses", body("responses", members), routeTo(to));
      assert.deepEqual([sent.tools, sent.tool_choice, sent.parallel_tool_calls], [undefined, undefined, undefined]);
    }
  }
});

test("parallel_tool_calls: false is not sent with the choice none", () => {
  const members = { tools: [chatOwn], tool_choice: "none", parallel_tool_calls: false };
  assert.deepEqual(upstreamBody("chat", body("chat", members), routeTo("messages")).tool_choice, { type: "none" });
});

test("the choice of a freeform tool names the function that replaces it, or stays freeform", () => {
  const members = { tools: [{ type: "custom", name: "p" }], tool_choice: { type: "custom", name: "p" } };
  const sent = (able: Partial<Capabilities>) =>
    upstreamBody("responses", body("responses", members), routeTo("chat", able)).tool_choice;
  assert.deepEqual(sent({}), { type: "function", function: { name: "p" } });
  assert.deepEqual(sent({ customTools: true }), { type: "custom", custom: { name: "p" } });
});

test("the allowed tools may be a whole namespace", () => {
  const tools = [
    own,
    {
      type: "namespace",
      name: "n",
      tools: [
        { type: "function", name: "a" },
        { type: "custom", name: "b" },
      ],
    },
  ];
  const tool_choice = { type: "allowed_tools", mode: "auto", tools: [{ type: "namespace", name: "n" }] };
  const sent = upstreamBody("responses", body("responses", { tools, tool_choice }), routeTo("messages"));
  assert.deepEqual(
    (sent.tools as { name: string }[]).map((tool) => tool.name),
    ["n__a", "n__b"],
  );
  assert.deepEqual(sent.tool_choice, { type: "auto" });
});

test("strict is sent to messages only with a schema in its closed dialect", () => {
  const strictTool = (schema: object) => ({
    type: "function",
    function: { name: "f", strict: true, parameters: schema },
  });
  const closed = {
    type: "object",
    properties: { a: { type: "string" } },
    required: ["a"],
    additionalProperties: false,
  };
  const strictOf = (schema: object) =>
    (
      upstreamBody("chat", body("chat", { tools: [strictTool(schema)] }), routeTo("messages")).tools as {
        strict?: boolean;
      }[]
    )[0]?.strict;
  assert.equal(strictOf(closed), true);
  assert.equal(strictOf({ ...closed, properties: { a: { type: "string", pattern: "x" } } }), undefined);
  assert.equal(strictOf({ type: "object", properties: {} }), undefined);
});

test("members that one part of an allOf requires are required; of variants, only those that all require", () => {
  const part = (name: string, required: string[]) => ({ type: "object", properties: { [name]: {} }, required });
  const schemaOf = (schema: object) => {
    const tools = [{ type: "function", function: { name: "f", description: "D", parameters: schema } }];
    const sent = upstreamBody("chat", body("chat", { tools }), routeTo("messages"));
    return (sent.tools as { input_schema: { required?: string[]; properties: object }; description: string }[])[0];
  };
  const all = schemaOf({ allOf: [part("a", ["a"]), part("b", ["b"])] });
  assert.deepEqual(all?.input_schema.required, ["a", "b"]);
  assert.match(all?.description ?? "", /^D\n\n.*allOf/);
  const one = schemaOf({
    oneOf: [part("a", ["a", "k"]), part("b", ["b", "k"])],
    properties: { k: {} },
    required: ["z"],
  });
  assert.deepEqual(one?.input_schema.required, ["z", "k"]);
  assert.deepEqual(Object.keys(one?.input_schema.properties ?? {}), ["k", "a", "b"]);
});
