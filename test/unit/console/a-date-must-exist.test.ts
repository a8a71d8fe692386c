/** A date that does not exist is refused: JavaScript would read February 30 as March 2. */
import assert from "node:assert/strict";
import test from "node:test";
import { readInstant } from "../../../src/console/input/parameters.ts";

test("an instant is read as written, and a date that does not exist is refused", () => {
  assert.equal(readInstant("since", "2028-02-29T12:00:00Z"), Date.UTC(2028, 1, 29, 12));
  for (const typed of [
    "2027-02-29T12:00:00Z",
    "2027-02-30T12:00:00Z",
    "2027-04-31T00:00:00Z",
    "2027-13-01T00:00:00Z",
  ]) {
    assert.throws(() => readInstant("since", typed), { status: 400, code: "malformed" }, typed);
  }
});
