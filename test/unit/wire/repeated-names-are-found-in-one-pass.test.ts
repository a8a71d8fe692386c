/** A list of any length is read once, and the repeated names found are those that a reader of every name finds. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { elementSpans, findDoubledName, findNested, memberSpans } from "../../../src/wire/json.ts";

/** The reference: gathers the names of each object. */
function readerFinds(list: Buffer, isMeant: (element: Uint8Array) => boolean): readonly unknown[] | undefined {
  const elements = (array: Uint8Array) => [...elementSpans(array)].map(({ start, end }) => array.subarray(start, end));
  const doubledIn = (object: Uint8Array) => {
    const names = [...memberSpans(object)].map(({ name }) => name);
    return names.find((name, at) => names.indexOf(name) < at);
  };
  for (const [index, element] of elements(list).entries()) {
    const span = findNested(element, ["in"]);
    const inside = span ? elements(element.subarray(span.start, span.end)).map(doubledIn) : [];
    const name = doubledIn(element) ?? inside.find((one) => one !== undefined);
    if (name !== undefined && isMeant(element)) return [index, name, Buffer.from(element).toString()];
  }
  return undefined;
}

const NAME = fc.constantFrom("a", "b", "c", "in", "\\u0061", "\\u0069n", "ä", "\\u00e4", "a long name of its own", "");
const SCALAR = fc.constantFrom("1", "null", '"text"', '"\\"a\\""', '"a\\\\"', `"${"x".repeat(60)}"`, "[]", "{}");
const SPACE = fc.constantFrom("", "", " ", "\n ");

function objectOf(value: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> {
  return fc
    .array(
      fc.tuple(NAME, SPACE, value).map(([name, space, one]) => `"${name}"${space}:${space}${one}${space}`),
      { maxLength },
    )
    .map((members) => `{${members.join(",")}}`);
}

function listOf(element: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(element, { maxLength: 5 }), SPACE)
    .map(([elements, space]) => `[${space}${elements.join(`,${space}`)}${space}]`);
}

const BLOCK = fc.oneof(objectOf(SCALAR, 4), objectOf(SCALAR, 20), SCALAR, listOf(objectOf(SCALAR, 3)));
const ELEMENT = fc.oneof(objectOf(fc.oneof(listOf(BLOCK), BLOCK), 4), objectOf(SCALAR, 20), BLOCK);

test("the repeated names found are those of the reference, in their order", () => {
  let found = 0;
  fc.assert(
    fc.property(listOf(ELEMENT), fc.integer({ min: 0, max: 2 }), (text, skipped) => {
      const list = Buffer.from(text);
      const skipping = () => {
        let asked = 0;
        return () => asked++ >= skipped;
      };
      const expected = readerFinds(list, skipping());
      const doubled = findDoubledName(list, "in", skipping());
      const element = doubled && list.toString("utf8", doubled.start, doubled.end);
      assert.deepEqual(doubled && [doubled.index, doubled.name, element], expected, text);
      if (expected) found++;
    }),
    { numRuns: 3_000 },
  );
  assert.ok(found > 300, `${found} were found`);
});

test("objects in a nested list are checked only if requested, and in a value that is no list nothing is found", () => {
  const list = Buffer.from('[{"in":[{"a":1,"a":2}]}]');
  assert.equal(
    findDoubledName(list, undefined, () => true),
    undefined,
  );
  assert.equal(
    findDoubledName(list, "on", () => true),
    undefined,
  );
  assert.equal(findDoubledName(list, "in", () => true)?.name, "a");
  for (const text of ["", "{}", '{"a":1,"a":1}', '"[{}]"', "1"]) {
    assert.equal(
      findDoubledName(Buffer.from(text), "in", () => true),
      undefined,
    );
  }
});

test("each byte is read only a few times, whatever the length of the list", () => {
  const block = { type: "redacted_thinking", data: "gw1.AAAAAAAA", index: 1 };
  const list = Buffer.from(JSON.stringify(Array(200).fill({ role: "assistant", content: Array(10).fill(block) })));
  let reads = 0;
  const counting = new Proxy(list, {
    get(target, name) {
      if (typeof name === "string" && /^\d+$/.test(name)) reads++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  assert.equal(
    findDoubledName(counting, "content", () => true),
    undefined,
  );
  assert.ok(reads >= list.length && reads < 4 * list.length, `${reads} reads of ${list.length} bytes`);
});
