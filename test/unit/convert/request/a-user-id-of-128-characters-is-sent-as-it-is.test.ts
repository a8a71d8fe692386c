/** Rule 28: a user id reaches the server unchanged up to the longest that it takes. `safety_identifier` comes before `user`. */
import assert from "node:assert/strict";
import test from "node:test";
import { routeTo, upstreamBody } from "./translate.ts";

const MESSAGES = [{ role: "user", content: "q" }];

function sentId(members: object): unknown {
  return upstreamBody("chat", { model: "m", messages: MESSAGES, ...members }, routeTo("responses")).safety_identifier;
}

test("an id of 128 characters is sent as it is, a longer one as a digest", () => {
  const longest = "u".repeat(128);
  assert.equal(sentId({ user: longest }), longest);
  assert.match(String(sentId({ user: `${longest}u` })), /^[0-9a-f]{64}$/);
});

test("if a client sends both members, the current one counts", () => {
  assert.equal(sentId({ user: "older", safety_identifier: "newer" }), "newer");
});
