/** A client may send as many members of metadata as it likes: the report of what was left out stays short. */
import assert from "node:assert/strict";
import test from "node:test";
import { isRefusal } from "../../../../src/values/errors.ts";
import { SURPLUS_MAX } from "../../../../src/values/members.ts";
import { routeTo, translate } from "./translate.ts";

test("of a thousand members the first hundred are named", () => {
  const metadata = Object.fromEntries([...Array.from({ length: 1_000 }, (_, i) => [`member_${i}`, "x"])]);
  const body = { max_tokens: 9, messages: [{ role: "user", content: "hi" }], metadata };
  const encoded = translate("messages", body, routeTo("chat"));
  assert.ok(!isRefusal(encoded));
  const named = [...encoded.dropped, ...encoded.ignored].filter((name) => name.startsWith("metadata.member_"));
  assert.deepEqual(
    named,
    Array.from({ length: SURPLUS_MAX }, (_, i) => `metadata.member_${i}`),
  );
});
