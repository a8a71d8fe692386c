/**
 * Rule 38: a conversation ends in reasoning if a client continues after a reply that broke off. Messages servers and
 * OpenAI's refuse it there, so it is left out and named as ignored.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { originOf, sealReasoning } from "../../../../src/convert/rules/envelope.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { CONTEXT, routeTo, translate } from "./translate.ts";

const ASKED = { role: "user", content: "q" };
const SAID = { type: "message", role: "assistant", content: [{ type: "output_text", text: "so" }] };

const NATIVE = {
  messages: { type: "thinking", thinking: "hm", signature: "s" },
  responses: { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "e" },
} as const;

/** What a server gets of the items, and what is named as ignored. */
function sent(to: keyof typeof NATIVE, prefill: boolean, items: readonly ("said" | "thought")[]) {
  const route = routeTo(to, { prefill });
  const encrypted_content = sealReasoning([NATIVE[to]], originOf(route), CONTEXT);
  const thought = { type: "reasoning", summary: [], encrypted_content };
  const input = [ASKED, ...items.map((one) => (one === "said" ? SAID : thought))];
  const written = translate("responses", { model: "m", input }, route);
  assert.ok(!isRefusal(written), JSON.stringify(written));
  const { messages, input: list } = JSON.parse(new TextDecoder().decode(written.body));
  return { list: messages ?? list, ignored: written.ignored };
}

for (const prefill of [false, true]) {
  test(`messages, prefill ${prefill}: a turn of nothing but reasoning is left out at the end`, () => {
    const { list, ignored } = sent("messages", prefill, ["thought", "thought"]);
    assert.deepEqual(
      list.map(({ role }: { role: string }) => role),
      ["user"],
    );
    assert.deepEqual(ignored, ["input.reasoning"]);
  });
}

test("messages: reasoning after the beginning of an answer is left out, and that before it stays", () => {
  const { list, ignored } = sent("messages", true, ["thought", "said", "thought"]);
  assert.deepEqual(list.at(-1), { role: "assistant", content: [NATIVE.messages, { type: "text", text: "so" }] });
  assert.deepEqual(ignored, ["input.reasoning"]);
});

test("messages: only the reasoning at the end is left out, not what was said before other reasoning", () => {
  const { list } = sent("messages", true, ["thought", "said", "thought", "said", "thought"]);
  const text = { type: "text", text: "so" };
  assert.deepEqual(list.at(-1), {
    role: "assistant",
    content: [NATIVE.messages, text, NATIVE.messages, text],
  });
});

test("responses: a turn of nothing but reasoning is left out", () => {
  const { list, ignored } = sent("responses", false, ["thought"]);
  assert.deepEqual(list, [{ type: "message", ...ASKED }]);
  assert.deepEqual(ignored, ["input.reasoning"]);
});
