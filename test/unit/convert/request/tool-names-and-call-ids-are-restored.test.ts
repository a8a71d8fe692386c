/**
 * docs/translation-rules.md rules 34 and 35: the names of tools and the ids of calls that the upstream gets, and how
 * the client's own names are restored.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { CallIds, safeCallId } from "../../../../src/convert/rules/ids.ts";
import { NameBook, restoreTool, safeToolName } from "../../../../src/convert/rules/tool-names.ts";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { routeTo, translate, upstreamBody } from "./translate.ts";

const LIMIT = { chat: 64, messages: 128, responses: 128 };
const func = (name: string, namespace?: string) => ({ kind: "function" as const, name, namespace });

test("all tools get different names that the upstream accepts, and each name is restored", () => {
  const name = fc.oneof(fc.string({ maxLength: 90 }), fc.constantFrom("a__b", "a.b", "a/b", "b", "x".repeat(70)));
  const tools = fc.uniqueArray(
    fc.record({ name, namespace: fc.option(fc.constantFrom("a", "a.c", "n"), { nil: undefined }) }),
    {
      selector: (one) => JSON.stringify([one.namespace, one.name]),
    },
  );
  for (const protocol of PROTOCOL_NAMES) {
    fc.assert(
      fc.property(tools, (list) => {
        const book = new NameBook(protocol);
        const names = list.map((one) => book.define(func(one.name, one.namespace)));
        assert.equal(new Set(names).size, list.length);
        for (const [index, one] of list.entries()) {
          const upstream = names[index] ?? "";
          assert.match(upstream, /^[a-zA-Z0-9_-]+$/);
          assert.ok(upstream.length <= LIMIT[protocol]);
          assert.equal(book.nameOf(func(one.name, one.namespace)), upstream);
          assert.deepEqual(restoreTool(book.map, upstream), func(one.name, one.namespace));
        }
      }),
    );
  }
});

test("rule 34: a long name keeps its beginning and ends with eight hex digits", () => {
  const long = "mcp__server__".padEnd(80, "x");
  assert.match(safeToolName(long, "chat"), /^mcp__server__x{42}_[0-9a-f]{8}$/);
  assert.equal(safeToolName(long, "messages"), long);
  assert.match(safeToolName("a.b", "chat"), /^a_b_[0-9a-f]{8}$/);
});

test("a name that was never offered stays unchanged", () => {
  assert.deepEqual(restoreTool(new Map(), "made_up"), { kind: "function", name: "made_up" });
});

test("a tool has the same name in tools, history, choice and tool references", () => {
  const name = "git.log";
  const sent = upstreamBody(
    "messages",
    {
      max_tokens: 9,
      messages: [
        { role: "user", content: "q" },
        { role: "assistant", content: [{ type: "tool_use", id: "a", name, input: {} }] },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "a", content: [{ type: "tool_reference", tool_name: name }] }],
        },
      ],
      tools: [{ name, input_schema: { type: "object" } }],
      tool_choice: { type: "tool", name },
    },
    routeTo("chat"),
  ) as {
    messages: { tool_calls?: { function: { name: string } }[]; content: unknown }[];
    tools: { function: { name: string } }[];
    tool_choice: { function: { name: string } };
  };
  const upstream = safeToolName(name, "chat");
  assert.equal(sent.tools[0]?.function.name, upstream);
  assert.equal(sent.messages[1]?.tool_calls?.[0]?.function.name, upstream);
  assert.equal(sent.messages[2]?.content, upstream);
  assert.equal(sent.tool_choice.function.name, upstream);
});

test("a plain tool and a namespaced one with the same flat name stay separate", () => {
  const encoded = translate(
    "responses",
    {
      input: "hi",
      tools: [
        { type: "namespace", name: "a", tools: [{ type: "function", name: "b" }] },
        { type: "function", name: "a__b" },
        { type: "function", name: "a__b" },
      ],
    },
    routeTo("chat"),
  );
  assert.ok("plan" in encoded);
  assert.deepEqual([...encoded.plan.tools.values()], [func("b", "a"), func("a__b")]);
});

test("rule 35: safe ids stay, and all others become the same digest each time", () => {
  for (const id of ["toolu_01", "call-1", "A".repeat(64)]) assert.equal(safeCallId(id), id);
  for (const id of ["functions.f:0", "", "a b", "A".repeat(65)]) {
    assert.match(safeCallId(id), /^call_[a-zA-Z0-9_-]{43}$/);
    assert.equal(safeCallId(id), safeCallId(id));
  }
  assert.notEqual(safeCallId(`${"A".repeat(65)}1`), safeCallId(`${"A".repeat(65)}2`));
});

test("an id that is used again in a later turn gets another id upstream, in the call and in its result", () => {
  const ids = new CallIds();
  const pairs = [1, 2, 3].map(() => [ids.ofCall("call_0"), ids.ofResult("call_0")]);
  for (const [call, result] of pairs) assert.equal(call, result);
  assert.equal(new Set(pairs.map(([call]) => call)).size, 3);
  assert.equal(pairs[0]?.[0], "call_0");
});
