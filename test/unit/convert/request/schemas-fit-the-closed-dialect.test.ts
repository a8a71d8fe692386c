/**
 * docs/translation-rules.md rule 26: schemas for messages' structured output, compared with what the official SDK's own
 * helper makes of them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import { closedSchema, hasMap, isClosed, objectRoot } from "../../../../src/convert/messages/schemas.ts";
import { routeTo, upstreamBody } from "./translate.ts";

const SCHEMAS: readonly Record<string, unknown>[] = [
  { type: "object", properties: { n: { type: "integer", minimum: 3, description: "N." } }, required: ["n"] },
  { $schema: "x", type: "object", properties: { a: { oneOf: [{ type: "string" }, { type: "null" }] } } },
  { type: "object", properties: { l: { type: "array", items: { type: "string", pattern: "x" }, minItems: 1 } } },
  { type: "object", properties: { l: { type: "array", items: { type: "object", properties: {} }, minItems: 2 } } },
  { type: "object", properties: { s: { type: "string", format: "uri" }, t: { type: "string", format: "regex" } } },
  { type: "object", properties: { e: { enum: ["a", "b"] }, c: { const: 1 } }, additionalProperties: true },
  { $ref: "#/$defs/x", $defs: { x: { type: "object", properties: { a: { type: "number", maximum: 5 } } } } },
  { type: "object", properties: { u: { anyOf: [{ type: "object", properties: {} }, { type: "number" }] } } },
  { allOf: [{ type: "object", properties: { a: { type: "string", maxLength: 3 } } }] },
];

for (const schema of SCHEMAS) {
  test(`as the SDK has it: ${JSON.stringify(schema)}`, () => {
    const before = JSON.stringify(schema);
    assert.deepEqual(closedSchema(schema), transformJSONSchema(schema as Parameters<typeof transformJSONSchema>[0]));
    assert.equal(JSON.stringify(schema), before);
  });
}

test("one format under both of the names that messages has for it is carried", () => {
  const format = { type: "json_schema", schema: { type: "object", properties: { a: { type: "string" } } } };
  const members = { messages: [{ role: "user", content: "hi" }], max_tokens: 9 };
  const both = { ...members, output_format: format, output_config: { format } };
  const sent = upstreamBody("messages", both, routeTo("chat", { structuredOutputs: true }));
  assert.deepEqual((sent.response_format as { json_schema: { schema: unknown } }).json_schema.schema, format.schema);
});

test("a schema with a word that the dialect does not have is not closed", () => {
  const closed = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
  const variants = (word: string) => ({ ...closed, properties: { a: { [word]: [closed] } } });
  assert.deepEqual([closed, variants("anyOf"), variants("allOf")].map(isClosed), [true, true, true]);
  const others = [variants("oneOf"), { ...closed, $schema: "x" }, { ...closed, additionalProperties: true }];
  assert.deepEqual(others.map(isClosed), [false, false, false]);
});

test("what has been closed is closed, but for what moved into words", () => {
  for (const schema of SCHEMAS) assert.equal(isClosed(closedSchema(schema)), true, JSON.stringify(schema));
});

test("an object that may have any members and says none is a map, wherever it stands; one that is said elsewhere is none", () => {
  const map = { type: "object" };
  const named = { type: "object", properties: { a: { type: "string" } } };
  const maps = [
    map,
    { type: ["object", "null"], properties: {} },
    { type: "object", additionalProperties: { type: "integer" } },
    { type: "object", additionalProperties: false, patternProperties: { x: {} } },
    ...[{ items: map }, { anyOf: [named, map] }, { properties: { a: map } }, { $defs: { a: map } }],
  ];
  const others = [
    named,
    { type: "string" },
    { type: "object", additionalProperties: false },
    { type: "object", $ref: "#/$defs/x" },
    ...["anyOf", "oneOf", "allOf"].map((variants) => ({ type: "object", [variants]: [named] })),
    { enum: [map], const: map, required: [map] },
  ];
  assert.deepEqual(
    [...maps, ...others].filter((schema) => hasMap(schema)),
    maps,
  );
});

test("properties named like members of Object stay properties", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"null"}}}',
  );
  assert.deepEqual(Object.keys(closedSchema(schema).properties as object), ["__proto__", "constructor"]);
  const merged = objectRoot({ anyOf: [schema] }).schema;
  assert.deepEqual(Object.keys(merged.properties as object), ["__proto__", "constructor"]);
});

test("rule 33: a tool's root is an object, and an object is left alone", () => {
  assert.deepEqual(objectRoot(undefined).schema, { type: "object", properties: {} });
  assert.deepEqual(objectRoot({ properties: { a: {} } }).schema, { properties: { a: {} }, type: "object" });
  const whole = { type: "object", properties: {} };
  assert.equal(objectRoot(whole).schema, whole);
  assert.equal(objectRoot(whole).note, undefined);
});
