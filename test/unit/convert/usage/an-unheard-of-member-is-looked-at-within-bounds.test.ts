/** Output in members that no protocol lists is counted, and of one that a server has made endless only the beginning is read. */
import assert from "node:assert/strict";
import test from "node:test";
import { Produced } from "../../../../src/convert/produced.ts";

function bytesOf(value: unknown): number {
  const produced = new Produced();
  produced.unknown(value);
  return produced.counts().bytes;
}

test("texts and lists of numbers are output, wherever they are; labels and numbers on their own are none", () => {
  assert.equal(bytesOf({ a: "xx", b: [1, 22, { c: ["yyy"] }], n: 7, type: "label" }), 2 + 2 + 3 + 3);
  assert.equal(bytesOf(7), 0);
  assert.equal(bytesOf([[], {}, [[5]]]), 2);
});

test("lists in lists are read no further than is counted", () => {
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
  // Ten thousand values, 21 of them lists, two bytes for each other one.
  assert.equal(bytesOf(nested), 2 * (10_000 - 21));
  assert.equal(read, 10_000 - 1);
});
