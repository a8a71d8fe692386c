/** docs/translation-rules.md rule 10: `content` of a messages client's system message is optional next to an effort. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { PERMITTED, routeTo, translate, upstreamBody } from "./translate.ts";

const hi = { role: "user", content: "hi" };

for (const content of [undefined, null]) {
  test(`a system message with the content ${content} sets the effort on translated routes`, () => {
    const messages = [hi, { role: "system", content, output_config: { effort: "high" } }];
    const sent = upstreamBody("messages", { max_tokens: 9, messages }, routeTo("chat"));
    assert.equal(sent.reasoning_effort, "high");
    assert.deepEqual(sent.messages, [hi]);
  });
}

test("any other message without content is refused", () => {
  for (const message of [{ role: "system" }, { role: "user", output_config: { effort: "high" } }]) {
    const refused = translate("messages", { max_tokens: 9, messages: [hi, message] }, routeTo("chat"), PERMITTED);
    assert.ok(isRefusal(refused));
    assert.deepEqual([refused.cause, refused.facts.param], ["missing_field", "messages.1.content"]);
  }
});
