/** docs/translation-rules.md rule 47: a list of findings is one message, with the place of the first finding. */
import assert from "node:assert/strict";
import test from "node:test";
import { namesOf } from "../../../src/dispatch/failure.ts";
import { readUpstreamWords } from "../../../src/dispatch/upstream/words.ts";
import { upstream } from "./rig.ts";

const settings = upstream("east", "https://gw.example:8443/v1");
const FINDING = {
  type: "extra_forbidden",
  loc: ["body", "messages", 0, "user", "name"],
  msg: "Extra inputs are not permitted",
};

function read(body: object) {
  const { message, names, meaning } = readUpstreamWords(Buffer.from(JSON.stringify(body)), settings);
  const { upstreamParam } = namesOf(names, undefined, { settings, model: "m", isOfClientsProtocol: true });
  return { message, param: upstreamParam, meaning };
}

const FORMS: Readonly<Record<string, object>> = {
  "in `detail`": { detail: [FINDING, { loc: ["body", "seed"], msg: "no" }] },
  "in `message.detail`": {
    object: "error",
    message: { detail: [FINDING] },
    type: "invalid_request_error",
    param: null,
  },
  "in `message`": { object: "Error", message: [FINDING], code: 3001 },
  "in an error's `message`": { error: { message: { detail: [FINDING] }, param: null } },
};

for (const [where, body] of Object.entries(FORMS)) {
  test(`findings ${where}`, () => {
    const { message, param } = read(body);
    assert.equal(message, "messages.0.user.name: Extra inputs are not permitted");
    assert.equal(param, "messages[0].user.name");
  });
}

test("the meaning is that of the finding's own text", () => {
  const found = { loc: ["body", "messages"], msg: "prompt is too long: 9 tokens > 5 maximum" };
  assert.equal(read({ detail: [found] }).meaning, "context_length_exceeded");
});

test("a finding about a member of the request says nothing about the operator's key", () => {
  const msg = "Invalid API key for the MCP server";
  assert.equal(read({ detail: [{ loc: ["body", "tools", 0, "headers"], msg }] }).meaning, undefined);
  assert.equal(read({ detail: [{ loc: ["header"], msg }] }).meaning, "credential");
  assert.equal(read({ error: { message: msg } }).meaning, "credential");
});

test("a text of the server's own comes before its findings, and lists of something else are ignored", () => {
  assert.deepEqual(read({ error: { message: "own", param: "seed" }, detail: [FINDING] }), {
    message: "own",
    param: "seed",
    meaning: undefined,
  });
  for (const detail of [[], ["text"], [{ loc: ["body"] }], [{ msg: 7 }], [null]]) {
    assert.equal(read({ detail }).message, undefined);
  }
  assert.equal(read({ detail: [{ loc: ["body"], msg: "too long" }] }).message, "too long");
  assert.equal(read({ detail: [{ loc: "body", msg: "too long" }] }).param, undefined);
});
