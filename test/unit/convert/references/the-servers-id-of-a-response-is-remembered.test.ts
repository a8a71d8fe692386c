/**
 * The gateway asks a server about a response by the server's own id, which the client has only as a wrapped id
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { wrappingStored } from "../../../../src/convert/responses/stored/reply.ts";
import { WrappedIds } from "../../../../src/convert/responses/stored/stored.ts";
import { OWN } from "./rig.ts";

/** @returns the id that is known after each of these events. */
function knownAfter(...said: readonly object[]): (string | undefined)[] {
  const ids = new WrappedIds({ upstream: "east", model: "big-1" }, OWN);
  const rewrite = wrappingStored(ids);
  return said.map((payload) => {
    const text = JSON.stringify(payload);
    rewrite({ raw: Buffer.from(`data: ${text}\n\n`), event: "e", data: Buffer.from(text) });
    return ids.responseId;
  });
}

const response = (id: unknown) => ({ type: "response.in_progress", response: { id } });

test("it is that of the first event with a response, and not that of an item", () => {
  const item = { type: "response.output_item.added", item: { id: "msg_1" } };
  assert.deepEqual(knownAfter(item, response("resp_1"), item, response("resp_2")), [
    ...[undefined, "resp_1", "resp_1", "resp_1"],
  ]);
});

test("an id that cannot be wrapped is none, because no client can ask for it", () => {
  assert.deepEqual(knownAfter(response("../resp"), response(7), response("resp 1"), response("resp_1")), [
    ...[undefined, undefined, undefined, "resp_1"],
  ]);
});
