/**
 * A front overwrites `traceparent` or adds its own. Of two values nobody can say which one is the front's, so a client
 * could put its requests into another trace: a new trace starts instead.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { traceparentOf } from "../../../src/accept/identity.ts";

const ONE = `00-${"1".repeat(32)}-${"a".repeat(16)}-01`;
const OTHER = `00-${"2".repeat(32)}-${"b".repeat(16)}-01`;

test("one well-formed trace context is continued, and two are ignored", () => {
  assert.equal(traceparentOf(new RequestHeaders(["traceparent", ONE])), ONE);
  assert.equal(traceparentOf(new RequestHeaders(["traceparent", ONE, "Traceparent", OTHER])), undefined);
  assert.equal(traceparentOf(new RequestHeaders(["traceparent", ONE, "traceparent", "none"])), undefined);
});
