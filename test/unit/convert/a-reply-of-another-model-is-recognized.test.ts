/** Which names in a reply denote the model that was asked for, and which denote another model. */
import assert from "node:assert/strict";
import test from "node:test";
import { AnsweredModel, isSameModel } from "../../../src/convert/answered-model.ts";

/** The name that was asked for, and the name in the reply. */
const SAME: readonly (readonly [string, string])[] = [
  ["gpt-5.1", "gpt-5.1"],
  ["gpt-5.1", "gpt-5.1-2025-11-13"],
  ["gpt-4o-2024-08-06", "gpt-4o"],
  ["gpt-4", "gpt-4-0613"],
  ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"],
  ["claude-3-5-haiku-latest", "claude-3-5-haiku-20241022"],
  ["claude-opus-4@20250514", "claude-opus-4-20250514"],
  ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929"],
  ["claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"],
  ["openai/gpt-5", "gpt-5-2025-08-07"],
  ["gpt-5", "openai/gpt-5"],
  ["models/gemini-2.5-flash", "gemini-2.5-flash-001"],
  ["accounts/fireworks/models/llama-v3p1-8b", "llama-v3p1-8b"],
  ["mistral-large-latest", "mistral-large-2411"],
  ["llama3", "llama3:latest"],
  ["Qwen/Qwen3-32B", "qwen3-32b"],
];

const OTHERS: readonly (readonly [string, string])[] = [
  ["cheap", "o1-pro"],
  ["o1", "o1-pro"],
  ["gpt-5", "gpt-5.1"],
  ["gpt-5", "gpt-5-mini"],
  ["gpt-4o", "gpt-4o-mini-2024-07-18"],
  ["gpt-4", "gpt-4-32k"],
  ["claude-opus-4", "claude-opus-4-1"],
  ["claude-3-haiku-20240307", "claude-3-5-haiku-20241022"],
  ["deepseek-chat", "deepseek-reasoner"],
  ["llama3:8b", "llama3:70b"],
  ["big", "big-1"],
];

for (const [asked, answered] of SAME)
  test(`${answered} is the same model as ${asked}`, () => assert.ok(isSameModel(asked, answered)));
for (const [asked, answered] of OTHERS) {
  test(`${answered} is another model than ${asked}`, () => {
    assert.ok(!isSameModel(asked, answered));
    assert.ok(isSameModel(asked, answered, [answered]));
    assert.ok(isSameModel(asked, answered, ["*"]));
  });
}

/** Payloads of a reply, and the other model that they name, if any. */
const REPLIES: readonly (readonly [string, readonly object[], string | undefined])[] = [
  ["chunks of the model", [{ model: "m" }, { model: "m" }, { choices: [] }], undefined],
  ["a chunk of another", [{ model: "m" }, { model: "dear" }, { model: "dearest" }], "dear"],
  ["a message", [{ type: "message_start", message: { model: "dear" } }], "dear"],
  ["a response", [{ type: "response.created", response: { model: "dear" } }], "dear"],
  ["a whole message with a fallback", [{ model: "m", content: [{ type: "fallback", to: { model: "dear" } }] }], "dear"],
  [
    "a fallback on the way",
    [{ content_block: { type: "fallback", from: { model: "m" }, to: { model: "dear" } } }],
    "dear",
  ],
  ["names that are none", [{ model: "" }, { model: null }, { model: 7 }, { response: [] }], undefined],
  ["a name without end", [{ model: "x".repeat(10_000) }], "x".repeat(128)],
];

for (const [name, payloads, other] of REPLIES) {
  test(`${name}: ${other === undefined ? "no other model" : String(other).slice(0, 20)}`, () => {
    const answered = new AnsweredModel("m", undefined);
    for (const payload of payloads) answered.see({ ...payload });
    assert.equal(answered.other, other);
    assert.deepEqual(answered.noted, other === undefined ? {} : { answeredBy: other });
  });
}
