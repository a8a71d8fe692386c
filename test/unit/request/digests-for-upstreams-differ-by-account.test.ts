/**
 * All accounts share an upstream's credential, so a digest that it gets, such as the key of its prompt cache, must not be
 * the same for two accounts with the same text: one could find out by timing what the other has sent.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { contextOf } from "../../../src/request/context.ts";
import { createSealing } from "../../../src/request/sealing.ts";
import { newAccountTag } from "../../../src/values/key.ts";
import { Secret } from "../../../src/values/secret.ts";
import { systemClock } from "../../../src/values/time.ts";

test("the same text has the same digest in every request of an account, and another one in another account", () => {
  const sealing = createSealing([new Secret("a-sealing-key-of-thirty-two-chars")]);
  const digestFor = (tag: ReturnType<typeof newAccountTag>) =>
    contextOf({ clock: systemClock, sealing }, { tag }).digest("a long system prompt");
  const [one, other] = [newAccountTag(randomBytes), newAccountTag(randomBytes)];
  assert.equal(digestFor(one), digestFor(one));
  assert.notEqual(digestFor(one), digestFor(other));
});
