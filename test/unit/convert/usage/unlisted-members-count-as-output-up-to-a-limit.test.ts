/** Output in members that no protocol lists is counted. Of a very large member only the beginning is read. */
import assert from "node:assert/strict";
import test from "node:test";
import { Produced } from "../../../../src/convert/produced.ts";

function bytesOf(value: unknown): number {
  const produced = new Produced();
  produced.unknown(value);
  return produced.counts().bytes;
}

test("texts and lists of numbers are counted as output at any depth; labels and single numbers are not", () => {
  assert.equal(bytesOf({ a: "xx", b: [1, 22, { c: ["yyy"] }], n: 7, type: "label" }), 2 + 2 + 3 + 3);
  assert.equal(bytesOf(7), 0);
  assert.equal(bytesOf([[], {}, [[5]]]), 2);
});

test("nested lists are read only up to the limit", () => {
  let read = 0;
  const counting = (values: unknown[]): unknown[] =>
    new Proxy(values, {
      get(target, name) {
        if (typeof name === "string" && /^\d+$/.test(name)) read++;
        return Reflect.get(target, name);
      },
    });
  let nested: unknown[] = [];
  for (let level = 0; level < 20; level++) nested = counting([nested, ...Array(9_999).fill(0)]);
  // Ten thousand values, of which 21 are lists and each other one counts two bytes.
  assert.equal(bytesOf(nested), 2 * (10_000 - 21));
  assert.equal(read, 10_000 - 1);
});
