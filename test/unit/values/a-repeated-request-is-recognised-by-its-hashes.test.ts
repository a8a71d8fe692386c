/** docs/decisions/idempotency-keeps-no-bodies.md: what the store gets to know of a request with an idempotency key. */
import assert from "node:assert/strict";
import test from "node:test";
import { idempotentRequest } from "../../../src/values/idempotency.ts";

const PATH = "/v1/chat/completions";
const BODY = Buffer.from('{"model":"m"}');

test("the same request with the same key has the same hashes", () => {
  assert.deepEqual(idempotentRequest("order-1", PATH, BODY), idempotentRequest("order-1", PATH, Buffer.from(BODY)));
});

test("another path or another body with the same key has another fingerprint", () => {
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

test("equal bodies with two keys have different fingerprints, so that the store does not reveal that they are equal", () => {
  const [one, other] = ["order-1", "order-2"].map((key) => idempotentRequest(key, PATH, BODY));
  assert.notEqual(one?.key, other?.key);
  assert.notEqual(one?.fingerprint, other?.fingerprint);
});

test("both hashes are 64 hex digits, as the store expects", () => {
  for (const hash of Object.values(idempotentRequest("order-1", PATH, BODY))) assert.match(hash, /^[0-9a-f]{64}$/);
});
