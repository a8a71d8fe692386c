/** A front, a browser and a proxy may each encode a target once more: a key in it is found all the same. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { newAccountTag, newKey } from "../../../src/values/key.ts";
import { containsKey } from "../../../src/values/key-search.ts";

const { text } = newKey(newAccountTag(randomBytes), randomBytes);

for (const dash of ["-", "%2D", "%252d", "%25252D"]) {
  test(`a key whose dash is written ${dash} is found`, () => {
    assert.ok(containsKey(`/search?q=${text.replace("-", dash)}&page=2`));
  });
}
