/**
 * Clients return sealed data as they got it, but some cut long texts, and anybody can make up a short one. An envelope of
 * any length that was not sealed here does not open, and is no defect.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createSealing } from "../../../src/request/sealing.ts";
import { Secret } from "../../../src/values/secret.ts";

test("an envelope opens as a whole, and not if it was cut at any place", () => {
  const sealing = createSealing([new Secret("a-sealing-key-of-thirty-two-chars")]);
  const sealed = sealing.seal(Buffer.from("some reasoning"), "tag:chat");
  assert.equal(Buffer.from(sealing.open(sealed, "tag:chat") ?? "").toString(), "some reasoning");
  for (let length = 0; length < sealed.length; length++)
    assert.equal(sealing.open(sealed.slice(0, length), "tag:chat"), undefined, `${length}`);
});
