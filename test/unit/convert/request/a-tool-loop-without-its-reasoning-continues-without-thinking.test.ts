/**
 * docs/translation-rules.md rules 27 and 38, on a route of the client's own protocol: reasoning that the gateway sealed
 * is removed. A thinking budget is switched off with it only if a running tool loop has lost the reasoning of its
 * beginning or of its last calls.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../../src/convert/bridge.ts";
import { withoutReasoning } from "../../../../src/convert/without-reasoning.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { isJsonFault, scanJson } from "../../../../src/wire/json.ts";
import { type Body, CONTEXT, PERMITTED, routeTo } from "./translate.ts";

const SEALED = { type: "thinking", thinking: "Look.", signature: "gw1.AAAA" };
const SIGNED = { type: "thinking", thinking: "Look.", signature: "theirs" };
const user = (content: unknown) => ({ role: "user", content });
const assistant = (...content: object[]) => ({ role: "assistant", content });
const call = (id: string) => ({ type: "tool_use", id, name: "look", input: {} });
const result = (id: string) => user([{ type: "tool_result", tool_use_id: id, content: "seen" }]);
const SAID = { type: "text", text: "Done." };
const CLEARING = { type: "clear_thinking_20251015", keep: "all" };
const TOOLS = { type: "clear_tool_uses_20250919" };

function requestOf(messages: readonly object[], more: Body = {}) {
  const thinking = { type: "enabled", budget_tokens: 2_000 };
  const json = { model: "m", max_tokens: 9_000, thinking, messages, ...more };
  const body = Buffer.from(JSON.stringify(json));
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  return { protocol: "messages", body, json, scan, model: "m", stream: false } as const;
}

function sent(messages: readonly object[], more: Body = {}, permitted = {}) {
  const opened = openExchange(requestOf(messages, more), routeTo("messages"), { ...PERMITTED, ...permitted }, CONTEXT);
  if (isRefusal(opened)) return { refused: opened.cause, param: opened.facts.param };
  const { thinking, context_management: managed } = JSON.parse(Buffer.from(opened.request.body).toString()) as Body;
  return { thinking: (thinking as { type: string }).type, managed, translation: opened.translation };
}

const ON = { thinking: "enabled", managed: undefined, translation: undefined };
const OFF = { thinking: "disabled", managed: undefined, translation: "lossy; dropped=thinking" };

const CASES: readonly (readonly [string, readonly object[], object])[] = [
  ["a loop that began with sealed reasoning", [user("go"), assistant(SEALED, call("a")), result("a")], OFF],
  [
    "such a loop with text among the results",
    [
      user("go"),
      assistant(SEALED, call("a")),
      user([
        { type: "tool_result", tool_use_id: "a", content: "x" },
        { type: "text", text: "y" },
      ]),
    ],
    OFF,
  ],
  [
    "the last calls of a loop that began with the server's own reasoning",
    [user("go"), assistant(SIGNED, call("a")), result("a"), assistant(SEALED, call("b")), result("b")],
    OFF,
  ],
  [
    "the beginning of a loop that continued with the server's own reasoning",
    [user("go"), assistant(SEALED, call("a")), result("a"), assistant(SIGNED, call("b")), result("b")],
    OFF,
  ],
  [
    "the middle of a loop that began with the server's own reasoning",
    [
      ...[user("go"), assistant(SIGNED, call("a")), result("a"), assistant(SEALED, call("b")), result("b")],
      ...[assistant(call("c")), result("c")],
    ],
    ON,
  ],
  [
    "a loop that is over",
    [user("go"), assistant(SEALED, call("a")), result("a"), assistant(SAID), user("and now?")],
    ON,
  ],
  ["an answer that called nothing", [user("go"), assistant(SEALED, SAID), user("and now?")], ON],
  [
    "a loop before this one",
    [
      user("go"),
      assistant(SEALED, call("a")),
      result("a"),
      assistant(SAID),
      user("more"),
      assistant(SIGNED, call("b")),
      result("b"),
    ],
    ON,
  ],
  [
    "a loop that began without reasoning",
    [
      user([{ type: "text", text: "go" }]),
      assistant(call("a")),
      result("a"),
      assistant(SEALED, call("b")),
      result("b"),
    ],
    OFF,
  ],
  [
    "a loop that the client has continued without reasoning",
    [
      user("go"),
      assistant(call("a")),
      result("a"),
      assistant(SEALED, call("b")),
      result("b"),
      assistant(call("c")),
      result("c"),
    ],
    ON,
  ],
];

for (const [name, messages, expected] of CASES) {
  test(`reasoning that the gateway sealed, in ${name}`, () => {
    assert.deepEqual(sent(messages), expected);
    assert.deepEqual(sent(messages, { thinking: { type: "adaptive" } }), { ...ON, thinking: "adaptive" });
    const strict = expected === ON ? ON : { refused: "unsupported_parameter", param: "thinking" };
    assert.deepEqual(sent(messages, {}, { strict: true }), strict);
  });
}

test("an edit that clears earlier thinking is removed if thinking is switched off", () => {
  const loop = CASES[0]?.[1] ?? [];
  const both = { edits: [TOOLS, CLEARING] };
  assert.deepEqual(sent(loop, { context_management: { edits: [CLEARING] } }), OFF);
  assert.deepEqual(sent(loop, { context_management: both }), { ...OFF, managed: { edits: [TOOLS] } });
  assert.deepEqual(sent([user("go")], { context_management: both }), { ...ON, managed: both });
  // The limit that is held leaves no room for a budget.
  const small = sent([user("go")], { context_management: both }, { outputLimit: 1_000 });
  assert.deepEqual(small, { thinking: "disabled", managed: { edits: [TOOLS] }, translation: undefined });
  const lowered = sent([user("go")], { context_management: both }, { outputLimit: 1_500 });
  assert.deepEqual(lowered, { ...ON, managed: both });
});

test("after a server has refused the reasoning, the request is sent without it, by the same rule", () => {
  const typeOf = (messages: readonly object[], more: Body = {}) => {
    const less = withoutReasoning(requestOf(messages, more));
    return less && [(less.json.thinking as Body).type, less.json.context_management, JSON.parse(less.body.toString())];
  };
  const loop = [user("go"), assistant(SIGNED, call("a")), result("a")];
  const [type, managed, body] = typeOf(loop, { context_management: { edits: [CLEARING] } }) ?? [];
  assert.deepEqual([type, managed], ["disabled", undefined]);
  assert.deepEqual(body.messages, [user("go"), assistant(call("a")), result("a")]);
  assert.equal(typeOf([...loop, assistant(SAID), user("and now?")])?.[0], "enabled");
  assert.equal(typeOf([user("go"), assistant(SAID), user("more")]), undefined);
});
