/**
 * docs/translation-rules.md rule 47: users of OpenAI's SDKs decide by `error.code` and show `error.param`. A parameter
 * is named only if the server speaks the client's protocol: else it is a member of a body that the client has not sent.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Fault } from "../../../../src/simulator/server.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { askFor, DIRECTIONS, type Direction, type Json, post, recordOf, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startGateway({ more: "", strict: false });
});

afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const PARAM = "messages[0].content[1].image_url";
const errorOf = (code: string | null, message = "The seventh word is wrong.") => ({
  error: { message, type: "invalid_request_error", param: PARAM, code },
});
const refusing = (code: string | null, message?: string): Fault => ({ status: 400, body: errorOf(code, message) });

async function refusal(direction: Direction, fault: Fault, more: Json = {}): Promise<Json> {
  const { key } = await here.account();
  here.simulator.program({ fault }, { times: Infinity });
  const reply = await post(here, direction.client, key, askFor(direction, more));
  assert.equal(reply.status, 400);
  return recordOf(((await reply.json()) as Json).error);
}

for (const direction of DIRECTIONS) {
  const { client, upstream } = direction;
  const name = `${client} client, ${upstream} upstream`;
  const param = client === upstream ? PARAM : null;

  if (client === "messages") {
    test(`${name}: an error has neither member, because its protocol has neither`, async () => {
      const error = await refusal(direction, refusing("string_above_max_length"));
      assert.deepEqual([error.code, error.param], [undefined, undefined]);
      assert.equal(error.message, "The seventh word is wrong.");
    });
    continue;
  }

  for (const stream of [false, true]) {
    test(`${name}: a 400 keeps its code${param ? " and parameter" : ""}, ${stream ? "streamed" : "whole"}`, async () => {
      for (const code of ["string_above_max_length", "invalid_image_url", "unsupported_value", "DeploymentNotReady"]) {
        const error = await refusal(direction, refusing(code), { stream });
        assert.deepEqual([error.code, error.param, error.cause], [code, param, "upstream_rejected"]);
      }
    });
  }

  test(`${name}: a 400 without a code has the gateway's`, async () => {
    const error = await refusal(direction, refusing(null));
    assert.deepEqual([error.code, error.param], ["upstream_rejected", param]);
  });

  test(`${name}: a 400 whose meaning has one code for all servers has that one`, async () => {
    const long = await refusal(direction, refusing("input_exceeds", "The prompt is too long: 9 tokens."));
    assert.deepEqual([long.code, long.param], ["context_length_exceeded", param]);
    assert.equal((await refusal(direction, refusing("content_filter"))).code, "content_policy_violation");
  });

  test(`${name}: a code that would be wrong about this gateway is left out`, async () => {
    for (const code of ["rate_limit_exceeded", "server_error"]) {
      assert.equal((await refusal(direction, refusing(code))).code, "upstream_rejected");
    }
  });
}

for (const client of ["chat", "responses"] as const) {
  const direction = { client, upstream: client };
  test(`${client}: an error as the first event of a stream, or in a 200, keeps its code`, async () => {
    const type = "invalid_request_error";
    const code = "invalid_image_url";
    const first = { errorEventAfter: { n: 0, type, code, message: "The seventh word is wrong." } };
    assert.equal((await refusal(direction, first, { stream: true })).code, code);
    const inBody = { status: 200, headers: { "content-type": "application/json" }, body: errorOf(code) };
    const error = await refusal(direction, inBody);
    assert.deepEqual([error.code, error.param], [code, PARAM]);
  });
}
