/**
 * On a route of the client's own protocol, an event that says that a response has ended, but has no response, is left
 * out. Clients would take it for the end of the stream, which has one end only (docs/translation-rules.md rule 48).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { openExchange } from "../../../src/convert/bridge.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { CONTEXT, PERMITTED } from "./request/translate.ts";
import { clientRequest, convertStream, framesOf, routeOf, smallBody, sse } from "./translate/rig.ts";

const CREATED = { type: "response.created", sequence_number: 0, response: { id: "r", output: [] } };
const DELTA = { type: "response.output_text.delta", sequence_number: 1, item_id: "i", output_index: 0, delta: "a" };
const WHOLE = {
  type: "response.completed",
  sequence_number: 3,
  response: { id: "r", status: "completed", output: [] },
};

function told(payloads: readonly unknown[]) {
  const request = clientRequest("responses", smallBody("responses", { stream: true }));
  const exchange = openExchange(request, routeOf("responses"), PERMITTED, CONTEXT);
  assert.ok(!isRefusal(exchange));
  const { text, fault } = convertStream(exchange, [Buffer.from(sse("responses", payloads))]);
  return { types: framesOf(text).map(({ data }) => data.type), fault: fault?.reason };
}

for (const type of ["response.completed", "response.incomplete", "response.failed", "response.cancelled"]) {
  test(`${type} without a response is left out, and the stream has failed if nothing else comes`, () => {
    const bare = { type, sequence_number: 2 };
    assert.deepEqual(told([CREATED, DELTA, bare]), {
      types: ["response.created", "response.output_text.delta", "error", "response.failed"],
      fault: "the stream ended without its terminal event",
    });
    assert.deepEqual(told([CREATED, DELTA, bare, WHOLE]), {
      types: ["response.created", "response.output_text.delta", "response.completed"],
      fault: undefined,
    });
  });
}
