/** Reading values in JSON without parsing it: the result is what JSON.parse would find. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  elementSpans,
  findNested,
  isJsonFault,
  memberSpans,
  memberValue,
  readJson,
  readJsonInSteps,
  scanJson,
  spliceJson,
  spliceNested,
  visitNames,
  withoutMembers,
} from "../../../src/wire/json.ts";

function found(text: string, path: readonly string[]): string | undefined {
  const body = Buffer.from(text);
  const span = findNested(body, path);
  return span && body.subarray(span.start, span.end).toString();
}

test("a path leads to a value, the empty path to the top level, and an unknown path nowhere", () => {
  const text = ' {"a" : {"b" :[1, 2 ] , "b\\u0063":"}"} , "é":1.0 } ';
  assert.equal(found(text, []), text.trim());
  assert.equal(found(text, ["a", "b"]), "[1, 2 ]");
  assert.equal(found(text, ["a", "bc"]), '"}"');
  assert.equal(found(text, ["é"]), "1.0");
  for (const path of [["b"], ["a", "b", "0"], ["é", "x"], ["a", "c"]]) assert.equal(found(text, path), undefined);
  assert.equal(found('{"a":1,"a":2}', ["a"]), "2");
});

test("an object or array without its end is not found", () => {
  for (const text of ['{"a":[1,2', '{"a":{"b":1', '{"a":[[1]', '{"a":["b', '{"a":[1,"b"'])
    assert.equal(found(text, ["a"]), undefined);
  for (const text of ["[1,2", '{"a":1', "[[1]"]) assert.equal(found(text, []), undefined);
});

test("only a complete array has elements", () => {
  const spans = (text: string) => [...elementSpans(Buffer.from(text))].map(({ start, end }) => text.slice(start, end));
  assert.deepEqual(spans("[]"), []);
  assert.deepEqual(spans(" [ ]"), []);
  assert.deepEqual(spans('[ 1,{"a":[2]} , "]" ,[ ]]'), ["1", '{"a":[2]}', '"]"', "[ ]"]);
  assert.deepEqual(spans('{"a":[1]}'), []);
});

test("property: elements and members are those of JSON.parse", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 }), fc.nat(3), (values, indent) => {
      const text = JSON.stringify(values, null, indent);
      const body = Buffer.from(text);
      const parsed = [...elementSpans(body)].map(({ start, end }) => JSON.parse(body.subarray(start, end).toString()));
      assert.deepEqual(parsed, JSON.parse(text));
      const owner = JSON.stringify({ x: { y: values } }, null, indent);
      assert.deepEqual(JSON.parse(found(owner, ["x", "y"]) ?? "0"), JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

/**
 * Strings around the length from which a string's end is searched, most of them full of characters that could mislead a search.
 */
const tricky = fc
  .array(fc.constantFrom("\\", '"', "a", "\\\\", '\\"', "{", "]", "é", "x".repeat(30)), { maxLength: 40 })
  .map((pieces) => pieces.join(""));

/** The names of an object, or of the objects of an array, in order, including nested ones. */
function namesOf(value: unknown, at = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((element) => namesOf(element, at));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [`${at}/${name}`, ...namesOf(inner, `${at}/${name}`)]);
}

/** A value of tricky strings; the written names are those that JSON.parse should find. */
const written = fc.letrec((tie) => ({
  any: fc.oneof({ maxDepth: 3 }, tricky, fc.integer(), fc.array(tie("any"), { maxLength: 3 }), tie("object")),
  object: fc.dictionary(tricky, tie("any"), { maxKeys: 4 }),
}));

// Compared with what was written, since V8's JSON.parse misreads some escaped names (nodejs/node#63785).
test("property: names and members are those that were written, whatever the strings between them contain", () => {
  fc.assert(
    fc.property(written.object, fc.nat(2), (object, indent) => {
      const body = Buffer.from(JSON.stringify(object, null, indent));
      const names: string[] = [];
      const end = visitNames(body, 0, "", (name, _plain, again, at) => {
        assert.ok(!again);
        names.push(`${at}/${name}`);
        return `${at}/${name}`;
      });
      assert.deepEqual([names, end], [namesOf(object), body.length]);
      const compact = Buffer.from(JSON.stringify(object));
      assert.deepEqual(
        [...memberSpans(compact)].map(({ name, start, end }) => [name, compact.toString("utf8", start, end)]),
        Object.entries(object as object).map(([name, inner]) => [name, JSON.stringify(inner)]),
      );
    }),
    { numRuns: 2_000 },
  );
});

const CUTS = ["remove", "keep", { under: "" }] as const;
const cutOf = (name: string) => CUTS[name.length % 3] as (typeof CUTS)[number];

/** The rest of a value after a removal, computed without looking at bytes. */
function leftOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(leftOf);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => cutOf(name) !== "remove");
  return Object.fromEntries(kept.map(([name, inner]) => [name, cutOf(name) === "keep" ? inner : leftOf(inner)]));
}

test("property: removing members leaves all others as they were written", () => {
  fc.assert(
    fc.property(written.any, fc.nat(2), (value, indent) => {
      const body = Buffer.from(JSON.stringify(value, null, indent));
      const left = withoutMembers(body, "", cutOf);
      const expected = leftOf(value);
      if (indent === 0) assert.equal(left.toString(), JSON.stringify(expected));
      const again = withoutMembers(left, "", cutOf);
      assert.equal(again, left, "nothing is left to remove");
      const names: string[] = [];
      visitNames(left, 0, "", (name, _plain, _again, at) => {
        names.push(`${at}/${name}`);
        return `${at}/${name}`;
      });
      assert.deepEqual(names, namesOf(expected));
    }),
    { numRuns: 2_000 },
  );
});

test("a removed member takes exactly one comma with it", () => {
  const left = (text: string) => withoutMembers(Buffer.from(text), "", cutOf).toString();
  assert.equal(left('{ "abc" : 1 , "a" : 2 }'), '{ "a" : 2 }');
  assert.equal(left('{ "a" : 1 , "abc" : 2 }'), '{ "a" : 1 }');
  assert.equal(left('{"abc":1,"def":2,"a":1,"abc":{"a":[1,"}"]},"b":2 , "abc":3 }'), '{"a":1,"b":2 }');
  assert.equal(left(' [ { "abc":1 } , [ {"\\u0061bc":1,"a":{"abc":1}} ] ]'), ' [ { } , [ {"a":{"abc":1}} ] ]');
});

test("a name is reported with whether it is escaped and whether it is repeated in its object", () => {
  const told: unknown[] = [];
  visitNames(Buffer.from('[{"a":1,"\\u0061":2,"é":{"a":0}},{"a":3}]'), 0, true, (name, plain, again) => {
    told.push([name, plain, again]);
    return undefined;
  });
  assert.deepEqual(told, [
    ["a", true, false],
    ["a", false, true],
    ["é", true, false],
    ["a", true, false],
  ]);
});

test("reading a string full of escapes takes time linear in its bytes", () => {
  const costOf = (text: string) => {
    const body = Buffer.from(`{"a":"${text}"}`);
    const before = process.cpuUsage();
    assert.equal(findNested(body, ["a"])?.end, body.length - 1);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  for (const piece of ['\\"', "\\\\", `${"\\\\".repeat(20)}\\"`, `${"x".repeat(40)}\\"`]) {
    const costUs = costOf(piece.repeat(4_000_000 / piece.length));
    assert.ok(costUs < 1_000_000, `${piece}: ${costUs} µs`);
  }
});

test("a splice accepts bytes as well as text", () => {
  const body = Buffer.from('{"a":1, "b":2}');
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const bytes = spliceJson(body, scan, { set: { b: Buffer.from('"é"'), c: Buffer.from('"ü"'), d: "3" } });
  assert.equal(Buffer.from(bytes).toString(), '{"a":1, "b":"é","c":"ü","d":3}');
});

/** Numbers that a double cannot represent, or not as they are written. */
const LONG_NUMBERS = [
  "9007199254740993",
  "-12345678901234567890",
  "0.1000000000000000055511151231257827",
  "1234567890123456.7890123456789012e-12",
  "1E+0000000000000000000000000000001",
  "1".repeat(400),
  `0.${"0".repeat(400)}1`,
];

for (const number of LONG_NUMBERS) {
  test(`a number of ${number.length} characters is kept exactly wherever it is: ${number.slice(0, 24)}`, async () => {
    const text = `{"n":${number},"o":{"n":${number},"m":1},"a":[${number},2]}`;
    const body = Buffer.from(text);
    const scan = scanJson(body);
    assert.ok(!isJsonFault(scan));
    assert.equal(String(memberValue(body, scan, "n")), number);
    for (const path of [["n"], ["o", "n"]]) assert.equal(found(text, path), number);
    const spans = (spanned: Iterable<{ start: number; end: number }>, of: Buffer) =>
      Array.from(spanned, ({ start, end }) => of.toString("utf8", start, end));
    const array = Buffer.from(found(text, ["a"]) as string);
    assert.deepEqual(spans(elementSpans(array), array), [number, "2"]);
    assert.equal(spans(memberSpans(body), body)[0], number);
    // A change of a neighbouring member sends the number unchanged.
    assert.equal(String(spliceJson(body, scan, { remove: ["o"] })), `{"n":${number},"a":[${number},2]}`);
    assert.equal(String(spliceNested(body, ["o", "m"], "3")), text.replace('"m":1', '"m":3'));
    const parsed = JSON.parse(text);
    const sizes = { scan: 1, parse: 4, text: 4 };
    for (const read of [readJson(body), await readJsonInSteps(body, () => undefined, undefined, sizes)]) {
      assert.ok("json" in read);
      assert.deepEqual([read.json, read.scan], [parsed, scan]);
    }
  });
}
