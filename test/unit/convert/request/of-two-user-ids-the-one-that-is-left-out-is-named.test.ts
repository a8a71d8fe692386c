/** docs/translation-rules.md rules 3 and 28: `user` is the earlier name of `safety_identifier`, and one id can be sent. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { type Body, routeTo, translate } from "./translate.ts";

const ASK = {
  chat: { messages: [{ role: "user", content: "hi" }] },
  responses: { input: "hi" },
} as const satisfies Record<string, Body>;

for (const [client, upstream, ignored] of [
  ["chat", "messages", ["user"]],
  ["chat", "responses", ["user"]],
  ["responses", "messages", ["user"]],
  ["responses", "chat", ["user", "safety_identifier"]],
] as const) {
  test(`${client} to ${upstream}: user is named next to another safety_identifier, and not next to the same one`, () => {
    const named = (members: Body) => {
      const encoded = translate(client, { ...ASK[client], ...members }, routeTo(upstream));
      assert.ok(!isRefusal(encoded));
      return encoded.ignored;
    };
    assert.deepEqual(named({ user: "ann", safety_identifier: "bob" }), ignored);
    const [, ...others] = ignored;
    assert.deepEqual(named({ user: "ann", safety_identifier: "ann" }), others);
    assert.deepEqual(named({ user: "ann" }), others);
    assert.deepEqual(named({ user: null, safety_identifier: "bob" }), others);
  });
}
