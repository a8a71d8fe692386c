/**
 * docs/translation-rules.md rule 10: a messages client's system message with `clear_at: next_user_message` counts until
 * the next message of the user, which may have results of tools only.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { type Body, PERMITTED, routeTo, translate } from "./translate.ts";

const user = { role: "user", content: "hi" };
const reminder = (clear_at?: unknown) => ({ role: "system", content: "Be brief.", clear_at });
const called = { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "f", input: {} }] };
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "done" }] };

/** How often the upstream gets the reminder. */
function shown(to: "chat" | "responses", messages: readonly Body[]): number {
  const tools = [{ name: "f", input_schema: { type: "object" } }];
  const route = routeTo(to, { midSystem: true });
  const translated = translate("messages", { max_tokens: 9, tools, messages }, route, { ...PERMITTED, strict: true });
  if (isRefusal(translated)) assert.fail(JSON.stringify(translated.facts));
  assert.deepEqual([translated.dropped, translated.ignored], [[], []]);
  return Buffer.from(translated.body).toString().split("Be brief.").length - 1;
}

const ONCE = "next_user_message";
const CASES: readonly (readonly [string, readonly Body[], number])[] = [
  ["at the end it counts", [user, reminder(ONCE)], 1],
  ["after the results of its turn it does not", [user, reminder(ONCE), called, result], 0],
  ["only the newest of several counts", [user, reminder(ONCE), called, result, reminder(ONCE)], 1],
  ["never cleared, it counts", [user, reminder("never"), called, result], 1],
  ["without the member, it counts", [user, reminder(), called, result, reminder(null)], 2],
];

for (const [what, messages, times] of CASES) {
  for (const to of ["chat", "responses"] as const) {
    test(`${what}, to ${to}`, () => {
      assert.equal(shown(to, messages), times);
    });
  }
}

test("another value is refused", () => {
  const refused = translate("messages", { max_tokens: 9, messages: [user, reminder("soon")] }, routeTo("chat"));
  assert.ok(isRefusal(refused));
  assert.deepEqual([refused.cause, refused.facts.param], ["wrong_type", "messages.1.clear_at"]);
});
