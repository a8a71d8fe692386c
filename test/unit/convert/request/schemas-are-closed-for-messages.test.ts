/**
 * docs/translation-rules.md rule 26: schemas for the structured output of messages, compared with the result of the
 * official SDK's own helper.
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
  test(`the schema is closed as the SDK does it: ${JSON.stringify(schema)}`, () => {
    const before = JSON.stringify(schema);
    assert.deepEqual(closedSchema(schema), transformJSONSchema(schema as Parameters<typeof transformJSONSchema>[0]));
    assert.equal(JSON.stringify(schema), before);
  });
}

test("the same format under both names of messages is accepted", () => {
  const format = { type: "json_schema", schema: { type: "object", properties: { a: { type: "string" } } } };
  const members = { messages: [{ role: "user", content: "hi" }], max_tokens: 9 };
  const both = { ...members, output_format: format, output_config: { format } };
  const sent = upstreamBody("messages", both, routeTo("chat", { structuredOutputs: true }));
  assert.deepEqual((sent.response_format as { json_schema: { schema: unknown } }).json_schema.schema, format.schema);
});

test("a schema with a keyword outside the dialect is not closed", () => {
  const closed = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
  const variants = (word: string) => ({ ...closed, properties: { a: { [word]: [closed] } } });
  assert.deepEqual([closed, variants("anyOf"), variants("allOf")].map(isClosed), [true, true, true]);
  const others = [variants("oneOf"), { ...closed, $schema: "x" }, { ...closed, additionalProperties: true }];
  assert.deepEqual(others.map(isClosed), [false, false, false]);
});

test("the result of closing a schema is closed", () => {
  for (const schema of SCHEMAS) assert.equal(isClosed(closedSchema(schema)), true, JSON.stringify(schema));
});

test("an object that lists no members and may have any is a map, at any depth; one whose members are listed elsewhere is not", () => {
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

test("properties with the names of Object's members stay properties", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"null"}}}',
  );
  assert.deepEqual(Object.keys(closedSchema(schema).properties as object), ["__proto__", "constructor"]);
  const merged = objectRoot({ anyOf: [schema] }).schema;
  assert.deepEqual(Object.keys(merged.properties as object), ["__proto__", "constructor"]);
});

test("rule 33: the root of a tool's schema becomes an object, and an object stays unchanged", () => {
  assert.deepEqual(objectRoot(undefined).schema, { type: "object", properties: {} });
  assert.deepEqual(objectRoot({ properties: { a: {} } }).schema, { properties: { a: {} }, type: "object" });
  const whole = { type: "object", properties: {} };
  assert.equal(objectRoot(whole).schema, whole);
  assert.equal(objectRoot(whole).note, undefined);
});
