/**
 * Rule 38: reasoning that a chat server gets back is not named as ignored, whichever of its members the server reads it
 * from.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

const THOUGHT = { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] };
const SAID = { role: "assistant", content: "a" };

function ignoredOf(input: readonly object[], capabilities: Parameters<typeof routeTo>[1]): readonly string[] {
  const encoded = translate("responses", { model: "m", input }, routeTo("chat", capabilities));
  assert.ok(!isRefusal(encoded));
  return encoded.ignored;
}

const user = (content: string) => ({ role: "user", content });

for (const reasoningField of ["reasoning_content", "reasoning", "thinking_parts", "think_tags"] as const) {
  test(`reasoning that is sent back as ${reasoningField} is not named, and reasoning that is left out is`, () => {
    const back = { reasoningContent: "roundtrip", reasoningField } as const;
    assert.deepEqual(ignoredOf([user("q"), THOUGHT, SAID, user("r")], back), []);
    // Nothing but reasoning: there is no message to send it with.
    assert.deepEqual(ignoredOf([user("q"), THOUGHT, user("r")], back), ["input.reasoning"]);
    const unwanted = { reasoningContent: "read", reasoningField } as const;
    assert.deepEqual(ignoredOf([user("q"), THOUGHT, SAID, user("r")], unwanted), ["input.reasoning"]);
  });
}
