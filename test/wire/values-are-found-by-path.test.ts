/** Looking into JSON without parsing it: what is found is what JSON.parse would find. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { elementSpans, findNested, isJsonFault, scanJson, spliceJson } from "../../src/wire/json.ts";

function found(text: string, path: readonly string[]): string | undefined {
  const body = Buffer.from(text);
  const span = findNested(body, path);
  return span && body.subarray(span.start, span.end).toString();
}

test("a path leads to a value, the empty one to the top, and others nowhere", () => {
  const text = ' {"a" : {"b" :[1, 2 ] , "b\\u0063":"}"} , "é":1.0 } ';
  assert.equal(found(text, []), text.trim());
  assert.equal(found(text, ["a", "b"]), "[1, 2 ]");
  assert.equal(found(text, ["a", "bc"]), '"}"');
  assert.equal(found(text, ["é"]), "1.0");
  for (const path of [["b"], ["a", "b", "0"], ["é", "x"], ["a", "c"]]) assert.equal(found(text, path), undefined);
  assert.equal(found('{"a":1,"a":2}', ["a"]), "2");
});

test("only a whole array has elements", () => {
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

test("a splice takes bytes as it takes text", () => {
  const body = Buffer.from('{"a":1, "b":2}');
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan));
  const bytes = spliceJson(body, scan, { set: { b: Buffer.from('"é"'), c: Buffer.from('"ü"'), d: "3" } });
  assert.equal(Buffer.from(bytes).toString(), '{"a":1, "b":"é","c":"ü","d":3}');
});
