/**
 * ARCHITECTURE.md promise 12, docs/failure-model.md row A6: questions about stored responses that wait for their turn when a drain reaches its deadline, or at an
 * immediate stop, get the same answer as paid requests that wait for a slot then. It is complete, and closes the connection.
 */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import test, { type TestContext } from "node:test";
import { testConfig } from "../../../rig/config.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { startBefore } from "../../../rig/own-upstream.ts";
import { ask, type ErrorShape } from "../whole/asking.ts";
import { at } from "./rig.ts";

const SLOTS = 4;
const RESPONSE = {
  ...{ id: "resp_0123456789abcdef", object: "response", status: "completed", model: "responses-1", output: [] },
  usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
};

/** Ends the gateway with these requests at its upstream and in front of it. @returns the answers. */
async function endedUnderWaiting(t: TestContext, end: (here: GatewayHere) => Promise<void>) {
  let holds = false;
  const held = Promise.withResolvers<void>();
  let heldNow = 0;
  const answers: RequestListener = (request, response) => {
    request.resume();
    if (!holds) response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(RESPONSE));
    else if (++heldNow === SLOTS) held.resolve();
  };
  const keeping = { stateful: true, max_concurrency: SLOTS, queue: { wait: "2m" } };
  const here = await startBefore(t, answers, {
    config: (places) => testConfig(places, { upstreams: { "up-responses": keeping } }),
    settings: (settings) => ({ ...settings, drain: { lameDuckMs: 1, deadlineMs: 1 } }),
  });
  const { key } = await here.account();
  const { id } = (await (await ask(here, "responses", key, { store: undefined })).json()) as { id: string };
  holds = true;
  const questions = [
    at(here, key, "GET", id),
    at(here, key, "GET", id),
    at(here, key, "DELETE", id),
    at(here, key, "POST", `${id}/cancel`),
  ];
  const paid = Array.from({ length: SLOTS }, () => ask(here, "responses", key));
  await held.promise;
  const queued = () => here.gateway.upstreams().find(({ name }) => name === "up-responses")?.queued;
  while (queued() !== 1) await new Promise((resolve) => setImmediate(resolve));
  const ended = end(here);
  const replies = await Promise.all([...questions, ...paid]);
  const seen = replies.map(async (reply) => {
    const { error } = (await reply.json()) as { error: ErrorShape };
    const { type, code, cause } = error;
    return [reply.status, type, code, cause, reply.headers.get("retry-after"), reply.headers.get("connection")];
  });
  await ended;
  return Promise.all(seen);
}

const ANSWER = [503, "server_error", "server_is_overloaded", "draining", "1", "close"];
const ENDS = {
  "at the deadline of a drain": (here: GatewayHere) => here.gateway.drain(),
  "at an immediate stop": (here: GatewayHere) => here.gateway.close(),
};

for (const [when, end] of Object.entries(ENDS)) {
  test(`${when}, what waits and what its server has not answered is refused with 503`, async (t) => {
    const answers = await endedUnderWaiting(t, end);
    assert.deepEqual(
      answers,
      Array.from({ length: SLOTS * 2 }, () => ANSWER),
    );
  });
}
