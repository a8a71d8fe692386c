/** Rule 38: if the calls of a step come from another model, Gemini wants the note that says so with the first call only. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

test("of two parallel calls the first carries the note", () => {
  const call = (call_id: string) => ({ type: "function_call", call_id, name: "look", arguments: "{}" });
  const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "seen" });
  const input = [{ role: "user", content: "q" }, call("a"), call("b"), output("a"), output("b")];
  const body = upstreamBody("responses", { model: "m", input }, routeTo("chat", { callSignatures: "google" }));
  const { tool_calls } = (body.messages as { tool_calls: { extra_content?: object }[] }[])[1] ?? { tool_calls: [] };
  assert.deepEqual(
    tool_calls.map(({ extra_content }) => extra_content),
    [{ google: { thought_signature: "skip_thought_signature_validator" } }, undefined],
  );
});
