/** ARCHITECTURE.md promise 6: a splice changes the member that it names and not a single other byte. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { isJsonFault, type JsonScan, memberValue, scanJson, spliceJson, spliceNested } from "../../../src/wire/json.ts";

function scanned(body: Uint8Array): JsonScan {
  const scan = scanJson(body);
  assert.ok(!isJsonFault(scan), `not scanned: ${Buffer.from(body)}`);
  return scan;
}

function splice(text: string, edits: Parameters<typeof spliceJson>[2]): string {
  const body = Buffer.from(text);
  return Buffer.from(spliceJson(body, scanned(body), edits)).toString();
}

test("a value is replaced in place", () => {
  assert.equal(splice('{ "a" : 1 , "model": "x" }\n', { set: { model: '"yé"' } }), '{ "a" : 1 , "model": "yé" }\n');
  assert.equal(splice('{"mod\\u0065l":1}', { set: { model: "2" } }), '{"mod\\u0065l":2}');
});

test("a new member is appended as the last one", () => {
  assert.equal(splice('{"a":1 }', { set: { b: "[]", c: "{}" } }), '{"a":1,"b":[],"c":{} }');
  assert.equal(splice("{}", { set: { b: "1" } }), '{"b":1}');
  assert.equal(splice("{ \n}", { set: { 'q"': "1" } }), '{ \n"q\\"":1}');
});

test("a member is removed with the right comma", () => {
  const text = '{ "a":1 , "b":2 , "c":3 }';
  assert.equal(splice(text, { remove: ["a"] }), '{ "b":2 , "c":3 }');
  assert.equal(splice(text, { remove: ["b"] }), '{ "a":1 , "c":3 }');
  assert.equal(splice(text, { remove: ["c"] }), '{ "a":1 , "b":2 }');
  assert.equal(splice(text, { remove: ["b", "c"] }), '{ "a":1 }');
  assert.equal(splice(text, { remove: ["a", "c"] }), '{ "b":2 }');
  assert.equal(splice(text, { remove: ["a", "b", "c"] }), "{  }");
  assert.equal(splice(text, { remove: ["a", "b", "c"], set: { d: "4", b: "5" } }), '{ "b":5,"d":4 }');
});

test("an edit without changes returns the same body", () => {
  const body = Buffer.from('{"a":1}');
  assert.equal(spliceJson(body, scanned(body), {}), body);
  assert.equal(spliceJson(body, scanned(body), { remove: ["zz"], set: {} }), body);
});

const space = fc.constantFrom("", " ", "\n\t", "\r\n ");
const name = fc.oneof(fc.constantFrom("model", "a", "b", "__proto__", "é", 'q"\\', "", "toString"), fc.string());
const value = fc.jsonValue({ maxDepth: 3 }).map((json) => JSON.stringify(json));
const layout = fc.uniqueArray(fc.tuple(name, value, space, space), { selector: (m) => m[0], maxLength: 6 });

function spelled(members: readonly (readonly [string, string, string, string])[]): string {
  return `{${members.map(([n, v, s1, s2]) => `${s1}${JSON.stringify(n)}${s2}:${s1}${v}${s2}`).join(",")}}`;
}

test("property: JSON.parse of a splice is the edited object, the other members keep bytes and order, chains hold", () => {
  const edit = fc.record({
    set: fc.uniqueArray(fc.tuple(name, value), { selector: (m) => m[0], maxLength: 3 }),
    remove: fc.uniqueArray(name, { maxLength: 3 }),
  });
  fc.assert(
    fc.property(
      layout,
      fc.array(edit, { maxLength: 4 }),
      fc.array(fc.nat(5), { maxLength: 3 }),
      (members, edits, own) => {
        let body: Uint8Array = Buffer.from(spelled(members));
        const model = new Map(members.map(([n, v]) => [n, v]));
        for (const { set, remove } of edits) {
          const removed = [...remove, ...own.flatMap((i) => members[i]?.[0] ?? [])];
          const toSet: Record<string, string> = Object.fromEntries(set);
          body = spliceJson(body, scanned(body), { set: toSet, remove: removed });
          for (const n of removed) if (!Object.hasOwn(toSet, n)) model.delete(n);
          for (const [n, v] of Object.entries(toSet)) model.set(n, v);
          const after = scanned(body);
          assert.deepEqual(
            after.members.map((m) => [m.name, Buffer.from(memberValue(body, after, m.name) ?? "").toString()]),
            [...model],
          );
          const parsed = Object.entries(JSON.parse(Buffer.from(body).toString()));
          const expected = Object.entries(JSON.parse(`{${[...model].map(([n, v]) => `${JSON.stringify(n)}:${v}`)}}`));
          assert.deepEqual(new Map(parsed), new Map(expected));
        }
      },
    ),
    { numRuns: 1_000, seed: 26 },
  );
});

test("a nested member is replaced, appended or removed by its path", () => {
  const nested = (text: string, path: string[], raw?: string) =>
    Buffer.from(spliceNested(Buffer.from(text), path, raw)).toString();
  const text = '{"type":"r", "response" : { "id":"x\\"}", "model" : "m" ,"o":[{"model":1}]}, "model":2}';
  assert.equal(nested(text, ["response", "model"], '"né"'), text.replace('"m"', '"né"'));
  assert.equal(nested(text, ["response", "model"]), text.replace('"model" : "m" ,', ""));
  assert.equal(nested(text, ["response", "o"]), text.replace(' ,"o":[{"model":1}]', ""));
  assert.equal(nested(text, ["response", "z"], "1"), text.replace("}]},", '}],"z":1},'));
  assert.equal(nested('{"a":{ }}', ["a", "b"], "1"), '{"a":{ "b":1}}');
  assert.equal(nested('{"a":{ "b":1 }}', ["a", "b"]), '{"a":{  }}');
  assert.equal(nested('{"mod\\u0065l":1}', ["model"], "2"), '{"mod\\u0065l":2}');
  assert.equal(nested('{"é":{"日":1}}', ["é", "日"], "2"), '{"é":{"日":2}}');
  assert.equal(nested('{"m":1,"m":2}', ["m"], "3"), '{"m":1,"m":3}');
});

test("a path that does not exist returns the same body", () => {
  for (const text of [
    '{"a":{"b":1}}',
    '{"a":[{"c":1}]}',
    '{"a":null}',
    '{"a":"c"}',
    "[1]",
    "7",
    "",
    "{",
    '{"a"',
    '{"a":{"c',
    '{"a":{"c":[',
  ]) {
    const body = Buffer.from(text);
    assert.equal(spliceNested(body, ["a", "c", "d"], "1"), body, text);
    assert.equal(spliceNested(body, ["x", "y"], "1"), body, text);
    assert.equal(spliceNested(body, ["x"], undefined), body, text);
    assert.equal(spliceNested(body, [], "1"), body, text);
  }
});

test("property: a nested splice is the edit of the parsed object", () => {
  fc.assert(
    fc.property(layout, layout, name, fc.option(value, { nil: undefined }), (outer, inner, leaf, raw) => {
      const others = outer.filter(([n]) => n !== "in");
      for (const at of [0, others.length]) {
        const members = others.toSpliced(at, 0, ["in", spelled(inner), " ", ""]);
        const body = spliceNested(Buffer.from(spelled(members)), ["in", leaf], raw);
        const model = new Map(inner.map(([n, v]) => [n, v]));
        if (raw === undefined) model.delete(leaf);
        else model.set(leaf, raw);
        const scan = scanned(body);
        const within = memberValue(body, scan, "in") as Uint8Array;
        const withinScan = scanned(within);
        assert.deepEqual(
          withinScan.members.map((m) => [
            m.name,
            Buffer.from(memberValue(within, withinScan, m.name) ?? "").toString(),
          ]),
          [...model],
        );
        assert.deepEqual(
          scan.members
            .filter((m) => m.name !== "in")
            .map((m) => Buffer.from(memberValue(body, scan, m.name) ?? "").toString()),
          others.map(([, v]) => v),
        );
      }
    }),
    { numRuns: 500, seed: 26 },
  );
});
