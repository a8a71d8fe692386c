/**
 * For a messages server the parts of a tool's schema (`allOf`) are joined to one object. A body can have 49,000 of them,
 * and translation is one turn of the event loop (docs/failure-model.md invariant 27). Copying what is required once for
 * each part took 33 s for 20,000 parts in 470 KB.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { objectRoot } from "../../../../src/convert/messages/schemas.ts";
import { workTimer } from "../../../rig/stopwatch.ts";

const PARTS = 20_000;

test("20,000 parts of a tool's schema, each with another required member, are joined in less than a second", () => {
  const names = Array.from({ length: PARTS }, (_, at) => `m${at}`);
  const allOf = names.map((name) => ({ properties: { [name]: {} }, required: [name] }));
  const tookMs = workTimer();
  const { schema } = objectRoot({ type: "object", allOf });
  const joinedMs = tookMs();
  assert.deepEqual(schema.required, names);
  assert.equal(Object.keys(schema.properties as object).length, PARTS);
  assert.ok(joinedMs < 1_000, `${joinedMs} ms`);
});
