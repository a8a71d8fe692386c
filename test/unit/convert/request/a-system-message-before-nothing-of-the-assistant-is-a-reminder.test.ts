/**
 * Rule 10: a messages server takes a system message only last or before an assistant message. If nothing is left of the
 * assistant's turn that follows (blank text, reasoning of another server, work of hosted tools), what comes after it
 * decides.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const rolesOf = (input: readonly object[]) => {
  const { messages } = upstreamBody("responses", { model: "m", input }, routeTo("messages", { midSystem: true }));
  return (messages as { role: string; content: unknown }[]).map(({ role, content }) => [role, JSON.stringify(content)]);
};

const ASKED = { role: "user", content: "q" };
const NOTE = { role: "developer", content: "mind" };
const ANSWER = { role: "assistant", content: "a" };

const NOTHING: readonly (readonly [string, object])[] = [
  ["blank text", { role: "assistant", content: "\n\n" }],
  ["reasoning of another server", { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "foreign" }],
  ["the search of another server", { type: "web_search_call", id: "ws_1", status: "completed" }],
];

for (const [name, nothing] of NOTHING) {
  test(`${name}: before a user message it is a reminder, and otherwise a system message`, () => {
    const again = rolesOf([ASKED, NOTE, nothing, { role: "user", content: "again" }]);
    assert.equal(again.length, 1);
    assert.match(String(again[0]), /user,.*"q".*system-reminder.*mind.*"again"/);
    assert.deepEqual(
      rolesOf([ASKED, NOTE, nothing, ANSWER, ASKED]).map(([role]) => role),
      ["user", "system", "assistant", "user"],
    );
    assert.deepEqual(
      rolesOf([ASKED, NOTE, nothing]).map(([role]) => role),
      ["user", "system"],
    );
  });
}
