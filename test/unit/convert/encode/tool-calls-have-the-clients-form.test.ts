/**
 * Tool calls in the form of each client's protocol, whole and streamed (docs/translation-rules.md rules 33, 36, 37 and
 * 41).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { ToolRef } from "../../../../src/convert/hub.ts";
import type { ReplyItem } from "../../../../src/convert/hub-reply.ts";
import { framesOf } from "../translate/rig.ts";
import { accumulateMessages, accumulateResponses } from "./accumulate.ts";
import { callOf, eventsOf, planFor, replyOf, streamOf, textItem, wholeBody } from "./encoding.ts";

type Json = Record<string, unknown>;

const F: ToolRef = { kind: "function", name: "f" };

/** The items that a responses client gets, which must be the same whole and streamed. */
function responsesItems(items: readonly ReplyItem[]): Json[] {
  const plan = planFor("responses", "chat");
  const whole = wholeBody(plan, replyOf(items));
  assert.deepEqual(accumulateResponses(streamOf(plan, eventsOf(replyOf(items)))), whole);
  return whole.output as Json[];
}

function inputOf(input: string): unknown {
  const plan = planFor("messages", "chat");
  const reply = replyOf([callOf("a", F, input)]);
  const [block] = wholeBody(plan, reply).content as Json[];
  assert.deepEqual(accumulateMessages(streamOf(plan, eventsOf(reply, 2))).content, [block]);
  return block?.input;
}

test("calls of each typed tool of responses get the tool's own item type", () => {
  const typed = (kind: ToolRef["kind"], input: unknown) =>
    responsesItems([callOf("call_1", { kind, name: kind }, JSON.stringify(input))]).map(({ id, ...item }) => {
      assert.match(String(id), /^(lsh|sh|apc|tsc)_[0-9A-Za-z]{24}$/);
      return item;
    })[0];
  const head = { status: "completed", call_id: "call_1" };
  assert.deepEqual(typed("local_shell", { command: ["ls", "-l"], workdir: "/tmp" }), {
    type: "local_shell_call",
    ...head,
    action: { type: "exec", command: ["ls", "-l"], env: {}, working_directory: "/tmp" },
  });
  assert.deepEqual(typed("shell", { commands: ["ls"] }), {
    type: "shell_call",
    ...head,
    action: { commands: ["ls"], timeout_ms: null, max_output_length: null },
  });
  assert.deepEqual(typed("apply_patch", { type: "delete_file", path: "a" }), {
    type: "apply_patch_call",
    ...head,
    operation: { type: "delete_file", path: "a" },
  });
  assert.deepEqual(typed("tool_search", { query: "git" }), {
    type: "tool_search_call",
    ...head,
    execution: "client",
    arguments: { query: "git" },
  });
});

test("a namespace is written next to the name, also in the first event, and left out if both are the same", () => {
  const log: ToolRef = { kind: "function", name: "log", namespace: "mcp__git" };
  const [item] = responsesItems([callOf("a", log, "{}")]);
  assert.deepEqual([item?.name, item?.namespace], ["log", "mcp__git"]);
  const stream = streamOf(planFor("responses", "chat"), eventsOf(replyOf([callOf("a", log, "{}")])));
  const added = framesOf(stream).find(({ event }) => event === "response.output_item.added")?.data.item as Json;
  assert.deepEqual([added.name, added.namespace], ["log", "mcp__git"]);
  const [same] = responsesItems([callOf("a", { kind: "function", name: "git", namespace: "git" }, "{}")]);
  assert(same && !("namespace" in same));
});

test("the last item of a truncated response is incomplete, and those before it are complete", () => {
  const plan = planFor("responses", "chat");
  const stop = { reason: "output-limit", stopSequence: undefined, refusal: undefined } as const;
  const reply = replyOf([textItem("hi"), callOf("a", F, '{"x":')], { stop });
  for (const body of [wholeBody(plan, reply), accumulateResponses(streamOf(plan, eventsOf(reply)))]) {
    assert.deepEqual([body.status, body.incomplete_details], ["incomplete", { reason: "max_output_tokens" }]);
    assert.deepEqual(
      (body.output as Json[]).map(({ status }) => status),
      ["completed", "incomplete"],
    );
  }
});

test("an input is an object, whatever the model wrote", () => {
  assert.deepEqual(inputOf(' {"a": 1}'), { a: 1 });
  assert.deepEqual(inputOf(""), {});
  assert.deepEqual(inputOf("null"), {});
  assert.deepEqual(inputOf("[1]"), { _raw_arguments: "[1]" });
  assert.deepEqual(inputOf("no json"), { _raw_arguments: "no json" });
});

test("an input nested too deep to be written stays a text", () => {
  const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
  const [block] = wholeBody(planFor("messages", "chat"), replyOf([callOf("a", F, deep)])).content as Json[];
  assert.deepEqual(block?.input, { _raw_arguments: deep });
});

test("a freeform call of a chat client has the type custom", () => {
  const plan = planFor("chat", "responses");
  const reply = replyOf([callOf("a", { kind: "custom", name: "exec" }, "free {text")]);
  const [choice] = wholeBody(plan, reply).choices as { message: Json }[];
  assert.deepEqual(choice?.message.tool_calls, [
    { id: "a", type: "custom", custom: { name: "exec", input: "free {text" } },
  ]);
});

test("a chat client of the deprecated form gets the first call in that form", () => {
  const plan = planFor("chat", "messages", { deprecatedFunctions: true });
  const reply = replyOf([callOf("a", F, '{"x":1}'), callOf("b", F, '{"y":2}')]);
  const [choice] = wholeBody(plan, reply).choices as { message: Json; finish_reason: string }[];
  assert.deepEqual(choice?.message.function_call, { name: "f", arguments: '{"x":1}' });
  assert(!("tool_calls" in choice.message));
  assert.equal(choice.finish_reason, "function_call");
  const stream = streamOf(plan, eventsOf(reply));
  const told = framesOf(stream).flatMap(({ data }) => {
    const [one] = (data.choices ?? []) as { delta: { function_call?: { arguments: string } } }[];
    return one?.delta.function_call?.arguments ?? [];
  });
  assert.equal(told.join(""), '{"x":1}');
  assert(stream.includes('"finish_reason":"function_call"') && !stream.includes("tool_calls"));
});

test("an id that some protocol does not accept becomes the same digest each time", () => {
  const [first] = responsesItems([callOf("functions.f:0", F, "{}")]);
  const [again] = responsesItems([callOf("functions.f:0", F, "{}")]);
  assert.match(String(first?.call_id), /^call_[A-Za-z0-9_-]{43}$/);
  assert.equal(first?.call_id, again?.call_id);
});
