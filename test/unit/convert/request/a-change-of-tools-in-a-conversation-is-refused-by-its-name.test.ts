/**
 * docs/translation-rules.md rule 33: a messages client may change its tools in the middle of a conversation, with blocks
 * that no other protocol has. The refusal must not say that the client has made a mistake.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

const CHANGES = [
  { type: "tool_addition", tool: { type: "tool_definition", definition: { name: "g", input_schema: {} } } },
  { type: "tool_removal", tool: { type: "tool_reference", name: "f" } },
];

for (const change of CHANGES) {
  for (const to of ["chat", "responses"] as const) {
    test(`${change.type} to ${to}`, () => {
      const messages = [
        { role: "user", content: "hi" },
        { role: "system", content: [change] },
      ];
      const refused = translate("messages", { max_tokens: 9, messages }, routeTo(to));
      assert.ok(isRefusal(refused));
      assert.deepEqual(
        [refused.cause, refused.facts.param, refused.facts.detail],
        ["untranslatable", "messages.1.content.0", `A ${change.type} block cannot be carried to this model.`],
      );
    });
  }
}
