/** Clients send lists that they have nothing for: an empty one is neither refused nor named, whatever a full one would be. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { routeTo, translate } from "./translate.ts";

const ask = (members: object) =>
  translate("messages", { max_tokens: 9, messages: [{ role: "user", content: "hi" }], ...members }, routeTo("chat"));

for (const name of ["mcp_servers", "fallbacks", "safeguards"]) {
  test(`an empty ${name} changes nothing`, () => {
    const encoded = ask({ [name]: [] });
    assert.ok(!isRefusal(encoded));
    assert.deepEqual([encoded.dropped, encoded.ignored], [[], []]);
  });
}

test("servers of the client's choice are refused, and other models to fall back on are named", () => {
  const refused = ask({ mcp_servers: [{ type: "url", url: "https://mcp.example", name: "m" }] });
  assert.ok(isRefusal(refused));
  assert.equal(refused.facts.param, "mcp_servers");
  const named = ask({ fallbacks: [{ model: "m" }] });
  assert.ok(!isRefusal(named));
  assert.deepEqual(named.dropped, ["fallbacks"]);
});
