/** docs/translation-rules.md rule 47: which member of an error body gives its meaning, and whose message is used. */
import assert from "node:assert/strict";
import test from "node:test";
import { readUpstreamWords } from "../../../src/dispatch/upstream/words.ts";
import { upstream } from "./rig.ts";

const SETTINGS = upstream("east", "https://gw.example:8443/v1");
const wordsOf = (body: object) => readUpstreamWords(Buffer.from(JSON.stringify(body)), SETTINGS);

test("a name in `status` means the same as one in `code` or `type`", () => {
  for (const member of ["code", "type", "status"]) {
    const { meaning } = wordsOf({ error: { message: "no", [member]: "CONTENT_FILTER" } });
    assert.equal(meaning, "content_policy_violation", member);
  }
});

test("a router's own message is used if the server behind it gave none that can be read", () => {
  const refused = (raw: unknown) => wordsOf({ error: { message: "Provider returned error", metadata: { raw } } });
  assert.equal(refused('{"error":{"message":"prompt is too long"}}').message, "prompt is too long");
  for (const raw of ["{}", '{"error":{"code":400}}', "Bad Gateway", '"text"', 7, undefined]) {
    assert.equal(refused(raw).message, "Provider returned error", String(raw));
  }
});
