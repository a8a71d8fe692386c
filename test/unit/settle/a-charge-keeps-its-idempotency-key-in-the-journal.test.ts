/** Records of the journal with an idempotency key, without one as older versions wrote them, and with one misread. */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeCharge, encode } from "../../../src/settle/journal/payload.ts";
import { askOf } from "./rig.ts";

const KEPT = { key: "a".repeat(64), fingerprint: "b".repeat(64), streamed: true, untilMs: 1_780_000_000_000 };
const readBack = (ask: object) => decodeCharge(encode({ ask, orphan: false }))?.ask;

test("a settlement comes back with its key", () => {
  assert.deepEqual(readBack({ ...askOf(1), idempotency: KEPT }), { ...askOf(1), idempotency: KEPT });
});

test("a record without a key is the charge that it always was", () => {
  assert.deepEqual(readBack(askOf(1)), askOf(1));
  assert.deepEqual(readBack({ ...askOf(1), idempotency: undefined }), askOf(1));
});

test("a key that cannot be read is left out, and the charge stays", () => {
  for (const broken of [
    null,
    1,
    "key",
    [],
    {},
    { ...KEPT, key: 1 },
    { ...KEPT, untilMs: -1 },
    { ...KEPT, streamed: 1 },
  ]) {
    assert.deepEqual(readBack({ ...askOf(1), idempotency: broken }), { ...askOf(1), idempotency: undefined });
  }
});
