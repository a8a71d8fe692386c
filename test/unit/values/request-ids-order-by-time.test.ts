/** RFC 9562 section 5.7; the request id is the idempotency key of hold, charge and ledger line. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import {
  issuedAtMs,
  newRequestId,
  printRequestId,
  type RequestId,
  readRequestId,
} from "../../../src/values/request-id.ts";

test("an id has version 7, variant 10 and 48 bits of time, and all other bits are random", () => {
  const ones = newRequestId(0, (count) => new Uint8Array(count).fill(0xff));
  const zeros = newRequestId(0xffff_ffff_ffff, (count) => new Uint8Array(count));
  assert.equal(ones, "0000000000007fffbfffffffffffffff");
  assert.equal(zeros, "ffffffffffff70008000000000000000");
});

test("property: the time is read back from an id, ids sort by it, in hex as well as printed", () => {
  const time = fc.integer({ min: 0, max: 2 ** 48 - 2 });
  fc.assert(
    fc.property(time, time, (a, b) => {
      const [first, second] = [newRequestId(a, randomBytes), newRequestId(b, randomBytes)];
      assert.match(first, /^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
      assert.equal(issuedAtMs(first), a);
      assert.match(printRequestId(first), /^req_[0-9A-Za-z]{24}$/);
      assert.equal(readRequestId(printRequestId(first)), first);
      if (a < b) assert.ok(first < second && printRequestId(first) < printRequestId(second));
    }),
    { numRuns: 1_000, seed: 26 },
  );
});

test("a fraction of a millisecond is dropped", () => {
  assert.equal(issuedAtMs(newRequestId(1_765_000_000_000.9, randomBytes)), 1_765_000_000_000);
});

test("the largest id still prints as 28 characters, and ids do not repeat", () => {
  const greatest = printRequestId(newRequestId(2 ** 48 - 1, (count) => new Uint8Array(count).fill(0xff)));
  assert.equal(greatest.length, 28);
  const many = Array.from({ length: 10_000 }, () => printRequestId(newRequestId(5, randomBytes)));
  assert.equal(new Set(many).size, many.length);
});

test("making an id does not change the random source", () => {
  const source = new Uint8Array(16).fill(7);
  newRequestId(1, () => source);
  assert.deepEqual(source, new Uint8Array(16).fill(7));
});

test("printing an invalid id throws", () => {
  for (const text of ["", "0123", "0".repeat(33)]) assert.throws(() => printRequestId(text as RequestId), RangeError);
});

test("a text that is not a printed id is not read as one", () => {
  const good = printRequestId(newRequestId(5, randomBytes));
  for (const text of [
    "",
    "req_",
    good.slice(1),
    `${good}0`,
    good.replace("req", "key"),
    `req_${"z".repeat(24)}`,
    `req_${"-".repeat(24)}`,
  ]) {
    assert.equal(readRequestId(text), undefined, text);
  }
});
