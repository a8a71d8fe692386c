/** docs/decisions/idempotency-keeps-no-bodies.md: what the store learns of a request under a key of its client's. */
import assert from "node:assert/strict";
import test from "node:test";
import { idempotentRequest } from "../../../src/values/idempotency.ts";

const PATH = "/v1/chat/completions";
const BODY = Buffer.from('{"model":"m"}');

test("the same request under the same key is the same one", () => {
  assert.deepEqual(idempotentRequest("order-1", PATH, BODY), idempotentRequest("order-1", PATH, Buffer.from(BODY)));
});

test("another path or another body under the same key is another request", () => {
  const first = idempotentRequest("order-1", PATH, BODY);
  for (const other of [
    idempotentRequest("order-1", "/v1/messages", BODY),
    idempotentRequest("order-1", PATH, Buffer.from('{"model":"n"}')),
    idempotentRequest("order-1", PATH, Buffer.alloc(0)),
  ]) {
    assert.equal(other.key, first.key);
    assert.notEqual(other.fingerprint, first.fingerprint);
  }
});

test("equal bodies under two keys look different, so that nobody who sees the store can tell that they are equal", () => {
  const [one, other] = ["order-1", "order-2"].map((key) => idempotentRequest(key, PATH, BODY));
  assert.notEqual(one?.key, other?.key);
  assert.notEqual(one?.fingerprint, other?.fingerprint);
});

test("both hashes are 64 hex digits, as the store wants them", () => {
  for (const hash of Object.values(idempotentRequest("order-1", PATH, BODY))) assert.match(hash, /^[0-9a-f]{64}$/);
});
