/** Journal records with an idempotency key, without one as older versions wrote them, and with an unreadable one. */
import assert from "node:assert/strict";
import test from "node:test";
import { decodeCharge, encode } from "../../../src/settle/journal/payload.ts";
import { askOf } from "./rig.ts";

const KEPT = { key: "a".repeat(64), fingerprint: "b".repeat(64), streamed: true, untilMs: 1_780_000_000_000 };
const readBack = (ask: object) => decodeCharge(encode({ ask, orphan: false }))?.ask;

test("a settlement read from the journal has its idempotency key", () => {
  assert.deepEqual(readBack({ ...askOf(1), idempotency: KEPT }), { ...askOf(1), idempotency: KEPT });
});

test("a record without a key is read as a charge without a key", () => {
  assert.deepEqual(readBack(askOf(1)), askOf(1));
  assert.deepEqual(readBack({ ...askOf(1), idempotency: undefined }), askOf(1));
});

test("an unreadable key is dropped and the charge is kept", () => {
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
