/**
 * Only its server can count the tokens of what it keeps, so there is no estimate. While that server cannot be asked, the client
 * is told to try again, and not that its request is wrong.
 */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import test from "node:test";
import { NATIVE_COUNTS_MAX } from "../../../../src/endpoints/count-tokens.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { startBefore } from "../../../rig/own-upstream.ts";
import { ask, errorOf } from "../whole/asking.ts";
import { startKeeping } from "./rig.ts";

const COUNT = { path: "/v1/responses/input_tokens" };
const STORED = { store: undefined };
const ANSWER = {
  ...{ id: "resp_1", object: "response", status: "completed", model: "responses-1" },
  output: [{ type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "hello" }] }],
  usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
};

async function madeBy(here: GatewayHere, key: string): Promise<string> {
  const { id } = (await (await ask(here, "responses", key, STORED)).json()) as { id: string };
  return id;
}

test("if as many counts as allowed are under way, the answer is 429, and the next one is the server's count", async (t) => {
  const here = await startKeeping();
  t.after(() => here.close());
  const [own, other] = [await here.account(), await here.account()];
  const continued = { ...STORED, previous_response_id: await madeBy(here, own.key) };
  here.simulator.hold();
  const before = here.simulator.count;
  const counts = Array.from({ length: NATIVE_COUNTS_MAX }, () =>
    ask(here, "messages", other.key, {}, { path: "/v1/messages/count_tokens" }),
  );
  await here.simulator.waitFor(before + NATIVE_COUNTS_MAX);
  const refused = await ask(here, "responses", own.key, continued, COUNT);
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "5"]);
  const { cause, message } = await errorOf(refused);
  assert.equal(cause, "upstream_rate_limit");
  assert.match(message, / Model: "responses-1"\. Group: "money"\.$/);
  here.simulator.release();
  for (const reply of await Promise.all(counts)) assert.equal(reply.status, 200);
  const counted = await ask(here, "responses", own.key, continued, COUNT);
  assert.deepEqual([counted.status, counted.headers.get("x-tollgate-origin")], [200, "upstream"]);
});

for (const [what, status, expected] of [
  ["is down for a moment", 503, [403, "upstream_unavailable", "true"]],
  ["is at its limit", 429, [429, "upstream_rate_limit", null]],
  ["has no such endpoint", 404, [400, "unsupported_parameter", null]],
  ["refuses the body", 400, [400, "upstream_rejected", null]],
] as const) {
  test(`if the server ${what}, the answer is ${expected[1]}; it is asked again for the next count`, async (t) => {
    let isWell = false;
    const here = await startBefore(t, (req: IncomingMessage, res: ServerResponse) => {
      req.resume().once("end", () => {
        const isCount = req.url === "/v1/responses/input_tokens";
        const body = isCount ? (isWell ? { input_tokens: 21 } : { error: { message: "no" } }) : ANSWER;
        res
          .writeHead(isCount && !isWell ? status : 200, { "content-type": "application/json" })
          .end(JSON.stringify(body));
      });
    });
    const { key } = await here.account();
    const continued = { ...STORED, previous_response_id: await madeBy(here, key) };
    const refused = await ask(here, "responses", key, continued, COUNT);
    const { cause } = await errorOf(refused);
    assert.deepEqual([refused.status, cause, refused.headers.get("x-should-retry")], expected);
    isWell = true;
    const counted = await ask(here, "responses", key, continued, COUNT);
    assert.equal(counted.status, 200);
    assert.equal(((await counted.json()) as { input_tokens: number }).input_tokens, 21);
  });
}
