/** Rule 19: cache breakpoints for a messages server are added for clients of the other protocols. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import type { Capabilities } from "../../../../src/values/catalog.ts";
import { breakpointFault } from "../../../e2e/protocol/caches/vendor.ts";
import { type Body, routeTo, upstreamBody } from "./translate.ts";

const LONG = "Read before you write. ".repeat(200);
const TOOL = { type: "function", function: { name: "look", description: LONG, parameters: { type: "object" } } };
const EPHEMERAL = { type: "ephemeral" };
const HOUR = { type: "ephemeral", ttl: "1h" };

const part = (text: string, cache_control?: object) => ({
  type: "text",
  text,
  ...(cache_control ? { cache_control } : {}),
});

/** A chat conversation with three turns of the user. */
function conversation(more: Body = {}): Body {
  return {
    model: "m",
    tools: [TOOL],
    messages: [
      { role: "system", content: LONG },
      { role: "user", content: "one" },
      { role: "assistant", content: "said" },
      { role: "user", content: "two" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "seen" },
    ],
    ...more,
  };
}

interface Marked {
  readonly cache_control?: { readonly ttl?: string };
}

/** Where the breakpoints are, as `tools.0`, `system.0` or `messages.2.0`. */
function marksOf(body: Record<string, unknown>): string[] {
  const places: string[] = [];
  const see = (blocks: unknown, path: string) => {
    for (const [at, block] of (Array.isArray(blocks) ? (blocks as Marked[]) : []).entries()) {
      if (block.cache_control)
        places.push(`${path}.${at}${block.cache_control.ttl ? `:${block.cache_control.ttl}` : ""}`);
    }
  };
  see(body.tools, "tools");
  see(body.system, "system");
  for (const [at, { content }] of (body.messages as { content: unknown }[]).entries()) see(content, `messages.${at}`);
  return places;
}

const sent = (body: Body, capabilities: Partial<Capabilities> = {}) =>
  upstreamBody("chat", body, routeTo("messages", capabilities));

test("a breakpoint is set at the end of tools, system and the last two user turns, including results of tools", () => {
  assert.deepEqual(marksOf(sent(conversation())), ["tools.0", "system.0", "messages.2.0", "messages.4.0"]);
});

test("a responses client gets the same breakpoints", () => {
  const input = [
    { role: "user", content: "one" },
    { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
    { type: "function_call_output", call_id: "c1", output: "seen" },
  ];
  const tools = [{ type: "function", name: "look", description: LONG, parameters: { type: "object" }, strict: false }];
  const body = upstreamBody("responses", { model: "m", instructions: LONG, input, tools }, routeTo("messages"));
  assert.deepEqual(marksOf(body), ["tools.0", "system.0", "messages.0.0", "messages.2.0"]);
});

test("the next request has a breakpoint where the last one ended, with the same bytes before it", () => {
  const first = sent(conversation());
  const messages = [
    ...(conversation().messages as unknown[]),
    { role: "assistant", content: "done" },
    { role: "user", content: "three" },
  ];
  const second = sent(conversation({ messages }));
  assert.deepEqual(marksOf(second).slice(-2), ["messages.4.0", "messages.6.0"]);
  const plain = (body: Record<string, unknown>) =>
    JSON.stringify(body).replaceAll(',"cache_control":{"type":"ephemeral"}', "");
  const prefix = plain({ tools: first.tools, system: first.system, messages: first.messages }).slice(0, -2);
  assert.ok(plain({ tools: second.tools, system: second.system, messages: second.messages }).startsWith(prefix));
});

test("no breakpoint is added while the prefix is shorter than the route's minimum", () => {
  const short = conversation({ tools: undefined, messages: [{ role: "user", content: "x".repeat(3_000) }] });
  assert.deepEqual(marksOf(sent(short)), []);
  assert.deepEqual(marksOf(sent(short, { promptCacheMinTokens: 512 })), ["messages.0.0"]);
  const later = [
    { role: "user", content: "one" },
    { role: "assistant", content: "x".repeat(3_100) },
    { role: "user", content: "two" },
  ];
  assert.deepEqual(marksOf(sent(conversation({ tools: undefined, messages: later }))), ["messages.2.0"]);
  assert.deepEqual(marksOf(sent(conversation(), { promptCacheMinTokens: 1_000_000 })), []);
});

test("no breakpoint is added if the operator or the client says so", () => {
  assert.deepEqual(marksOf(sent(conversation(), { promptCache: "client" })), []);
  assert.deepEqual(marksOf(sent(conversation({ prompt_cache_options: { mode: "explicit" } }))), []);
  assert.equal(marksOf(sent(conversation({ prompt_cache_options: { mode: "implicit" } }))).length, 4);
});

test("a client's own breakpoints are kept, and the most useful others fill up to four", () => {
  const user = (...parts: object[]) => ({ role: "user", content: parts });
  const own = [part("a", EPHEMERAL), part("b", EPHEMERAL), part("c", EPHEMERAL), part("d")];
  const messages = [{ role: "system", content: LONG }, user(...own)];
  assert.deepEqual(marksOf(sent(conversation({ messages }))), [
    "messages.0.0",
    "messages.0.1",
    "messages.0.2",
    "messages.0.3",
  ]);
  const two = [{ role: "system", content: LONG }, user(part("a", EPHEMERAL), part("b", EPHEMERAL), part("c"))];
  assert.deepEqual(marksOf(sent(conversation({ messages: two }))), [
    "system.0",
    "messages.0.0",
    "messages.0.1",
    "messages.0.2",
  ]);
  const five = [{ role: "system", content: LONG }, user(...Array.from({ length: 6 }, () => part("a", EPHEMERAL)))];
  assert.equal(marksOf(sent(conversation({ messages: five }))).length, 4);
});

test("a breakpoint of the body counts as one of the four", () => {
  assert.equal(marksOf(sent(conversation({ cache_control: EPHEMERAL }))).length, 3);
});

test("no breakpoint of five minutes comes before one of an hour", () => {
  const messages = [
    { role: "system", content: LONG },
    { role: "user", content: [part("a", HOUR), part("b")] },
  ];
  assert.deepEqual(marksOf(sent(conversation({ messages }))), ["messages.0.0:1h", "messages.0.1"]);
  assert.deepEqual(marksOf(sent(conversation({ cache_control: HOUR }))), []);
});

test("the server's rules are kept whatever a client marks", () => {
  const mark = fc.constantFrom(undefined, EPHEMERAL, HOUR);
  const turn = fc.array(mark, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 4 }), mark, mark, (turns, ofTool, ofBody) => {
      // A client's own wrong order is refused by the server.
      const all = [ofTool, ...turns.flat(), ofBody].filter((one) => one !== undefined).slice(-4);
      fc.pre(!all.includes(EPHEMERAL) || all.lastIndexOf(HOUR) <= all.indexOf(EPHEMERAL));
      const messages = turns.flatMap((marks) => [
        { role: "user", content: marks.map((one, at) => part(LONG + at, one)) },
        { role: "assistant", content: "said" },
      ]);
      messages.push({ role: "user", content: [part("last")] });
      const tools = [{ ...TOOL, ...(ofTool ? { cache_control: ofTool } : {}) }];
      const body = sent({ model: "m", tools, messages, ...(ofBody ? { cache_control: ofBody } : {}) });
      assert.equal(breakpointFault(body), undefined);
      for (const place of marksOf(sent({ model: "m", tools, messages }, { promptCache: "client" })).slice(-3)) {
        assert.ok(marksOf(body).includes(place), `the client's ${place}`);
      }
    }),
    { numRuns: 300 },
  );
});
