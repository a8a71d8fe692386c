/**
 * Which keys are looked up despite the limit of their address, and which refusals count against it
 * (docs/failure-model.md row 30).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { FailedKeys } from "../../../src/accept/failed-keys.ts";
import { NO_SEEN_KEYS } from "../../../src/admit/seen-keys.ts";
import { presentedKey, refuseBadKey } from "../../../src/request/refuse.ts";
import { isRefusal, refusal } from "../../../src/values/errors.ts";
import type { KeyHash, WellFormedKey } from "../../../src/values/key.ts";

const KEY = { hash: "hash" as KeyHash } as WellFormedKey;
const REQUEST = { key: KEY, clientAddress: "203.0.113.7" };

/** An address with too many bad keys. */
function fullAddress() {
  const asked: string[] = [];
  const note =
    <T>(what: string, answer: T) =>
    () => {
      asked.push(what);
      return answer;
    };
  const failedKeys = { mayLookUp: note("look up", false), failed: note("failed", 7), waitS: note("wait", 7) };
  return { asked, failedKeys: failedKeys as unknown as FailedKeys };
}

test("a key that was bad a moment ago is refused with the same cause, and takes no lookup of its address", () => {
  const { asked, failedKeys } = fullAddress();
  const seenKeys = { ...NO_SEEN_KEYS, bad: () => "revoked_key" as const };
  const refused = presentedKey(REQUEST, { failedKeys, admit: { seenKeys } });
  assert.ok(isRefusal(refused));
  assert.deepEqual([refused.cause, asked], ["revoked_key", []]);
});

test("a key that was good is looked up at any address, another key has to wait", () => {
  const { failedKeys } = fullAddress();
  assert.equal(
    presentedKey(REQUEST, { failedKeys, admit: { seenKeys: { ...NO_SEEN_KEYS, wasGood: () => true } } }),
    KEY,
  );
  const refused = presentedKey(REQUEST, { failedKeys, admit: { seenKeys: NO_SEEN_KEYS } });
  assert.ok(isRefusal(refused));
  assert.deepEqual([refused.cause, refused.retryAfterS], ["bad_keys", 1]);
});

test("a guessed key counts against its address, a key that was good once only waits there, and any other refusal is unchanged", () => {
  for (const [cause, what] of [
    ["unknown_key", "failed"],
    ["malformed_key", "failed"],
    ["conflicting_keys", "failed"],
    ["revoked_key", "wait"],
    ["suspended", "wait"],
    ["expired_key", "wait"],
  ] as const) {
    const { asked, failedKeys } = fullAddress();
    const { cause: answered, retryAfterS } = refuseBadKey(refusal(cause), REQUEST, failedKeys);
    assert.deepEqual([answered, retryAfterS, asked], ["bad_keys", 7, [what]], cause);
  }
  const { asked, failedKeys } = fullAddress();
  assert.deepEqual([refuseBadKey(refusal("missing_key"), REQUEST, failedKeys).cause, asked], ["missing_key", []]);
});
