/** The number of names in a JSON text, as JSON.parse would find them. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { hasMoreNames } from "../../../src/wire/json.ts";

/** The exact counts of `hasMoreNames` for a text, found by trying limits. */
function counts(text: string): { names: number; different: number } {
  const body = Buffer.from(text);
  const least = (exceeds: (limit: number) => boolean): number => {
    let limit = 0;
    while (exceeds(limit)) limit++;
    return limit;
  };
  return {
    names: least((names) => hasMoreNames(body, { names, different: 1_000 })),
    different: least((different) => hasMoreNames(body, { names: 1_000, different })),
  };
}

test("names are counted, and strings that look like names are not", () => {
  assert.deepEqual(counts("{}"), { names: 0, different: 0 });
  assert.deepEqual(counts('{"a":1,"b" :2,"c"\n\t:{"a":["b",":"]}}'), { names: 4, different: 3 });
  assert.deepEqual(counts(String.raw`["a\":1,\"b\\","\\",{"\\":1,"\"":2}]`), { names: 2, different: 2 });
  assert.deepEqual(counts(' {"":0,"é":1,"\u{1f600}":2} '), { names: 3, different: 3 });
});

test("the count equals the number of names that JSON.parse finds in any object", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom(undefined, 1), (text, indent) => {
      const found: string[] = [];
      const value = JSON.parse(text, function (this: unknown, name, member) {
        if (!Array.isArray(this)) found.push(name);
        return member;
      });
      found.pop(); // The reviver's name for the whole.
      const body = JSON.stringify(value, undefined, indent);
      const counted = counts(body);
      assert.equal(counted.names, found.length);
      // Two of them may collide, once in some thousand texts.
      const missed = new Set(found).size - counted.different;
      assert.ok(missed === 0 || missed === 1, `${missed} of ${found.length}`);
    }),
    { numRuns: 200 },
  );
});

test("a truncated or invalid text ends the count at that place", () => {
  for (const text of ["", '"', '{"a', '{"a"', '{"a" ', '"\\', "no JSON", '{"a":"\\'])
    assert.equal(hasMoreNames(Buffer.from(text), { names: 1, different: 1 }), false);
});

test("names with different escapes are different: ten places of two letters are a thousand names", () => {
  const names = Array.from({ length: 1_000 }, (_, at) =>
    at.toString(2).padStart(10, "0").replaceAll("0", "n").replaceAll("1", String.raw`\n`),
  );
  const body = Buffer.from(`{${names.map((name) => `"${name}":0`).join(",")}}`);
  assert.equal(Object.keys(JSON.parse(body.toString())).length, 1_000);
  assert.equal(hasMoreNames(body, { names: 1_000, different: 950 }), true);
});

test("a long string, which may be the whole answer, is not read to its end", () => {
  for (const text of ["a".repeat(100_000), "漢".repeat(50_000), "\n".repeat(50_000), "\u0001".repeat(20_000)]) {
    const body = Buffer.from(JSON.stringify({ a: text, b: 1 }));
    let reads = 0;
    const counting = new Proxy(body, {
      get(target, name) {
        if (typeof name === "string" && /^\d+$/.test(name)) reads++;
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    assert.equal(hasMoreNames(counting, { names: 1, different: 9 }), true);
    assert.ok(reads < 1_000, `${reads} reads of ${body.length} bytes`);
  }
});
