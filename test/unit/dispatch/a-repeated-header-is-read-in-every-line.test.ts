/** The head of a reply is checked in every line: a field that was sent several times arrives as a list. */
import assert from "node:assert/strict";
import test from "node:test";
import { isFailure, type ReplyFields, readReplyHead } from "../../../src/dispatch/upstream/reply-head.ts";

const kindOf = (fields: ReplyFields) => {
  const head = readReplyHead(200, { "content-type": "application/json", ...fields });
  return isFailure(head) ? head.kind : "good";
};

test("each line of a repeated field counts towards the limit of fields", () => {
  assert.equal(kindOf({ "set-cookie": Array(127).fill("a=b") }), "good");
  assert.equal(kindOf({ "set-cookie": Array(128).fill("a=b") }), "bad_headers");
});

test("each line of a repeated field may have only printable ASCII", () => {
  assert.equal(kindOf({ via: ["1.1 one", "1.1 two"] }), "good");
  assert.equal(kindOf({ via: ["1.1 one", "1.1 tw\u00f6"] }), "bad_headers");
});

test("the older name of gzip is understood, in one line or in several with `identity`", () => {
  for (const encoding of ["x-gzip", "X-GZIP", ["identity", "x-gzip"]]) {
    const head = readReplyHead(200, { "content-encoding": encoding });
    assert.equal(isFailure(head) ? head.kind : head.encoding, "gzip", String(encoding));
  }
});
