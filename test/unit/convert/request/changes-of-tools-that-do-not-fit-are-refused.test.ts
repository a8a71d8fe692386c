/**
 * docs/translation-rules.md rule 33: a change of a messages client's tools is refused where Anthropic refuses it, with
 * the code by which its SDK chooses the class of the error.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { type Body, routeTo, translate } from "./translate.ts";

const tool = { name: "first", input_schema: { type: "object" } };
const add = (changed: object) => ({ type: "tool_addition", tool: changed });
const remove = (changed: object) => ({ type: "tool_removal", tool: changed });
const reference = (name: string) => ({ type: "tool_reference", name });
const define = (definition: object) => add({ type: "tool_definition", definition });
const user = { role: "user", content: "hi" };

function refused(to: "chat" | "responses", content: readonly object[], more: Body = {}, role = "system") {
  const messages = [user, { role, content }];
  const refusal = translate("messages", { max_tokens: 9, tools: [tool], messages, ...more }, routeTo(to));
  assert.ok(isRefusal(refusal), "it is not refused");
  return refusal;
}

const AT = "messages.1.content.0.tool";
const UNRESOLVED = "tool_reference_unresolved";

/** The change, and the cause, member and code of the refusal. */
const CASES: readonly (readonly [string, object, string, string, string | undefined])[] = [
  ["an unknown tool is removed", remove(reference("none")), "wrong_type", AT, UNRESOLVED],
  ["an unknown tool is added", add(reference("none")), "wrong_type", AT, UNRESOLVED],
  [
    "tools of an unknown server are added",
    add({ type: "mcp_toolset_reference", server_name: "first" }),
    "wrong_type",
    AT,
    UNRESOLVED,
  ],
  [
    "a tool of another type has the name",
    define({ type: "web_search_20250305", name: "first" }),
    "wrong_type",
    `${AT}.definition.type`,
    "tool_name_conflict",
  ],
  [
    "a removal defines a tool",
    remove({ type: "tool_definition", definition: tool }),
    "wrong_type",
    `${AT}.type`,
    undefined,
  ],
  ["a change without a tool", { type: "tool_removal" }, "missing_field", AT, undefined],
  ["a reference without a name", add({ type: "tool_reference" }), "missing_field", `${AT}.name`, undefined],
  ["a definition without a name", define({ input_schema: {} }), "missing_field", `${AT}.definition.name`, undefined],
];

for (const [what, change, cause, param, code] of CASES) {
  for (const to of ["chat", "responses"] as const) {
    test(`${what}, to ${to}`, () => {
      const refusal = refused(to, [change]);
      assert.deepEqual([refusal.cause, refusal.facts.param, refusal.details?.error_code], [cause, param, code]);
    });
  }
}

test("a tool of another type may take the name of a removed one", () => {
  const search = define({ type: "web_search_20250305", name: "first" });
  const content = [remove(reference("first")), search, define({ name: "second", input_schema: {} })];
  const messages = [user, { role: "system", content }];
  const translated = translate("messages", { max_tokens: 9, tools: [tool], messages }, routeTo("chat"));
  assert.ok(!isRefusal(translated));
});

test("a reference comes after the definition", () => {
  const third = { name: "third", input_schema: {} };
  assert.equal(refused("chat", [add(reference("third")), define(third)]).facts.param, AT);
});

test("a choice that names a removed tool is refused", () => {
  const choice = { tool_choice: { type: "tool", name: "first" } };
  const second = define({ name: "second", input_schema: {} });
  const refusal = refused("chat", [remove(reference("first")), second], choice);
  assert.deepEqual([refusal.cause, refusal.facts.param], ["untranslatable", "tool_choice"]);
});

test("a choice that demands a tool is refused if none is left", () => {
  const refusal = refused("responses", [remove(reference("first"))], { tool_choice: { type: "any" } });
  assert.deepEqual([refusal.cause, refusal.facts.param], ["untranslatable", "tool_choice"]);
});

for (const role of ["user", "assistant"]) {
  test(`a change in the message of the ${role} is refused by its name`, () => {
    const refusal = refused("chat", [remove(reference("first"))], {}, role);
    assert.deepEqual(
      [refusal.cause, refusal.facts.param, refusal.facts.detail],
      ["untranslatable", "messages.1.content.0", "A tool_removal block cannot be carried to this model."],
    );
  });
}
