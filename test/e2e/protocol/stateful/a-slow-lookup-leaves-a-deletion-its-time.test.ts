/**
 * Before a stored response is deleted or cancelled its server is asked for its state. Each of the two questions has 30 s
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md), because the first one may wait long for its turn or for a large answer.
 */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import test from "node:test";
import { startBefore } from "../../../rig/own-upstream.ts";
import { ask } from "../whole/asking.ts";
import { HandClock } from "../whole/hand-clock.ts";
import { at } from "./rig.ts";

const LOOKUP_MS = 29_000;
const DELETION_MS = 2_000;
const RESPONSE = {
  ...{ id: "resp_0123456789abcdef", object: "response", status: "completed", model: "responses-1", output: [] },
  usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
};

test("a response is deleted after a lookup that took 29 s", async (t) => {
  const clock = new HandClock();
  const answers: RequestListener = (request, response) => {
    request.resume();
    if (request.method === "GET") clock.advance(LOOKUP_MS);
    if (request.method === "DELETE") clock.advance(DELETION_MS);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(request.method === "DELETE" ? { ...RESPONSE, deleted: true } : RESPONSE));
  };
  const here = await startBefore(t, answers, { clock });
  const { key } = await here.account();
  const reply = await ask(here, "responses", key, { store: undefined });
  const { id } = (await reply.json()) as { id: string };
  const deleted = await at(here, key, "DELETE", id);
  const body = await deleted.text();
  assert.equal(deleted.status, 200, body);
  assert.equal(JSON.parse(body).deleted, true);
});
