/** ARCHITECTURE.md promise 11: an error that ends a stream names what an error before it does. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { framesOf } from "../whole/asking.ts";
import { askFor, DIRECTIONS, type Json, modelOn, post, recordOf, startDirections } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startDirections();
});

after(() => here.close());

/** The errors of a stream, and the request id that the client reads in it; a `response.failed` has no place for one. */
const ERRORS: Readonly<Record<Protocol, (frames: readonly Json[]) => readonly [error: Json, requestId: unknown][]>> = {
  chat: (frames) => [[recordOf(frames.at(-1)?.error), recordOf(frames.at(-1)?.error).request_id]],
  messages: (frames) => [[recordOf(frames.at(-1)?.error), frames.at(-1)?.request_id]],
  responses(frames) {
    const [event = {}, failed = {}] = frames.slice(-2);
    const error = recordOf(event.error);
    const named = [event, error, recordOf(recordOf(failed.response).error)];
    return named.map((one) => [one, error.request_id]);
  },
};

for (const direction of DIRECTIONS) {
  const { client, upstream } = direction;
  test(`${client} client, ${upstream} upstream`, async () => {
    const { key } = await here.account();
    here.simulator.program({ text: "a few words ".repeat(20), fault: { resetAfterEvents: 9 } });
    const answer = await post(here, client, key, askFor(direction, { stream: true }));
    const frames = framesOf(await answer.text())
      .filter(({ data }) => data.startsWith("{"))
      .map(({ data }) => JSON.parse(data) as Json);
    for (const [{ message }, requestId] of ERRORS[client](frames)) {
      assert.ok(String(message).endsWith(` Model: "${modelOn(upstream)}". Group: "money".`), String(message));
      assert.equal(requestId, answer.headers.get("x-request-id"));
    }
  });
}
