/**
 * Requests for lists, counts and usage read their key without being admitted. A client that sends only these is not
 * refused with 429 when others at its address send bad keys: a key that was good when it was read is looked up again.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { readKeyView } from "../../../src/admit/key-view.ts";
import { createSeenKeys } from "../../../src/admit/seen-keys.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { newAccountTag, newKey, readKey } from "../../../src/values/key.ts";
import { openTestStore } from "../console/test-store.ts";
import { FakeClock } from "../dispatch/rig.ts";

test("a key that was read is known as good, and no longer once it was found revoked", async (t) => {
  const store = await openTestStore(t);
  const seenKeys = createSeenKeys(new FakeClock());
  const tag = newAccountTag(randomBytes);
  const key = newKey(tag, randomBytes);
  const presented = readKey(key.text);
  assert.ok(typeof presented === "object");
  await store.createAccount({ tag, name: "reader", plan: "free" });
  await store.createKey(tag, { id: key.id, hash: key.hash, group: "money" });
  const read = () => readKeyView(presented, "", { store, seenKeys });
  assert.equal(seenKeys.wasGood(presented.hash), false);
  assert.ok(!isRefusal(await read()));
  assert.equal(seenKeys.wasGood(presented.hash), true);
  await store.revokeKey(tag, key.id);
  const refused = await read();
  assert.equal(isRefusal(refused) && refused.cause, "revoked_key");
  assert.equal(seenKeys.wasGood(presented.hash), false);
});
