/**
 * Rule 33: `allowed_callers: ["direct"]` asks for what happens anyway. A list with another caller in addition asks for
 * more than that, and is named.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

function droppedFor(allowed_callers: readonly string[]): readonly string[] {
  const tools = [{ name: "look", input_schema: { type: "object" }, allowed_callers }];
  const body = { model: "m", max_tokens: 9, tools, messages: [{ role: "user", content: "q" }] };
  const encoded = translate("messages", body, routeTo("chat"));
  assert.ok(!isRefusal(encoded));
  return encoded.dropped;
}

test("only the model as caller is not named, another caller beside it is", () => {
  assert.deepEqual(droppedFor(["direct"]), []);
  assert.deepEqual(droppedFor(["direct", "code_execution_20250825"]), ["tools.allowed_callers"]);
});
