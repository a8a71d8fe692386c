/**
 * Rule 17: white space at the end of a prefill is left out, because messages servers refuse it. A byte order mark is not white space
 * to them; a prefill that is only one must not become an empty text, which they refuse.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

for (const [said, sent] of [
  ["So \n\t\u00a0", "So"],
  ["\ufeff", "\ufeff"],
  ["So\ufeff ", "So\ufeff"],
  [" So", " So"],
] as const) {
  test(`${JSON.stringify(said)} is sent as ${JSON.stringify(sent)}`, () => {
    const messages = [
      { role: "user", content: "q" },
      { role: "assistant", content: said },
    ];
    const { messages: written } = upstreamBody("chat", { messages }, routeTo("messages", { prefill: true })) as {
      messages: readonly unknown[];
    };
    assert.deepEqual(written[1], { role: "assistant", content: [{ type: "text", text: sent }] });
  });
}
