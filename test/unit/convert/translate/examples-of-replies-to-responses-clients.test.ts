/** Hand-written cases: replies to responses clients, end to end (docs/translation-rules.md rules 39 to 56). */
import assert from "node:assert/strict";
import test from "node:test";
import { chunk, completion, frameAt, type Json, messageStart, PROMPT_7, textBlock, usageChunk } from "./payloads.ts";
import { convertInOnePush, framesOf, routeOf, smallBody, sse, wholeOf } from "./rig.ts";

test("the wrapped input of a freeform tool becomes free text", () => {
  const tools = [{ type: "custom", name: "apply_patch", format: { type: "grammar", syntax: "lark", definition: "x" } }];
  const fn = { name: "apply_patch", arguments: '{"input":"*** Begin Patch\\n"}' };
  const calls = [{ id: "call_1", type: "function", function: fn }];
  const upstream = completion({ role: "assistant", content: null, tool_calls: calls }, "tool_calls");
  const [item] = wholeOf("responses", smallBody("responses", { tools }), routeOf("chat"), upstream).output as Json[];
  assert.deepEqual(
    { ...item, id: undefined },
    {
      id: undefined,
      type: "custom_tool_call",
      status: "completed",
      call_id: "call_1",
      name: "apply_patch",
      input: "*** Begin Patch\n",
    },
  );
});

test("a flattened name gets its namespace back", () => {
  const log = { type: "function", name: "log", parameters: { type: "object" } };
  const tools = [{ type: "namespace", name: "mcp__git", description: "d", tools: [log] }];
  const calls = [{ id: "call_1", type: "function", function: { name: "mcp__git__log", arguments: "{}" } }];
  const upstream = completion({ role: "assistant", content: null, tool_calls: calls }, "tool_calls");
  const [item] = wholeOf("responses", smallBody("responses", { tools }), routeOf("chat"), upstream).output as Json[];
  assert.deepEqual([item?.type, item?.name, item?.namespace], ["function_call", "log", "mcp__git"]);
});

test("a text gives exactly the events of the protocol", () => {
  const upstream = sse("chat", [
    chunk({ role: "assistant", content: "he" }),
    chunk({ content: "y" }),
    chunk({}, "stop"),
    usageChunk(PROMPT_7),
    "[DONE]",
  ]);
  const { text } = convertInOnePush("responses", smallBody("responses"), routeOf("chat"), upstream);
  const frames = framesOf(text);
  assert.deepEqual(
    frames.map(({ event }) => event),
    [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ],
  );
  assert.deepEqual(
    frames.map(({ data }) => data.sequence_number),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  const { output, usage } = frameAt(frames, -1).data.response as { output: { content: Json[] }[]; usage: Json };
  assert.equal(output[0]?.content[0]?.text, "hey");
  assert.equal(usage.total_tokens, 107);
});

test("an overloaded messages upstream is a server_error in a responses stream", () => {
  const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  const upstream = sse("messages", [messageStart(), ...textBlock(0, "Once"), overloaded]);
  const { text } = convertInOnePush("responses", smallBody("responses"), routeOf("messages"), upstream);
  const [error, failed] = [frameAt(text, -2), frameAt(text, -1)];
  assert.deepEqual([error.event, error.data.code], ["error", "server_error"]);
  const response = failed.data.response as { id: string; status: string; error: Json; output: unknown[] };
  assert.deepEqual([failed.event, response.status, response.error.code], ["response.failed", "failed", "server_error"]);
  assert.equal(response.id, (frameAt(text, 0).data.response as Json).id);
  assert.equal(response.output.length, 1, "the complete item stays");
});
