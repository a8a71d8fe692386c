/**
 * A request that its server refuses for what is in it, after the model has read it, is billed each time, and a client can
 * send it any number of times. So its count is charged as if the client had disconnected before the first byte
 * (docs/decisions/what-a-disconnect-costs.md). Before, all of it was absorbed, without end.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { formatUsd } from "../../../../src/values/money.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, memoOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** 0.30 USD. */
const COUNT = { input_tokens: 100_000, output_tokens: 0, total_tokens: 100_000 };

function failed(stream: boolean, code: string, usage: Fields | null): Fields {
  const response = { id: "resp_1", object: "response", created_at: 1, model: "m", status: "failed", output: [], usage };
  const whole = { ...response, error: { code, message: "This content cannot be processed." } };
  if (!stream) return { body: whole };
  return { frames: [{ event: "response.failed", data: { type: "response.failed", response: whole } }] };
}

/** Asks twice. @returns kind, amount and payer's reason of the lines. */
async function askedTwice(
  client: (typeof PROTOCOL_LIST)[number],
  stream: boolean,
  reply: Fields,
): Promise<readonly (readonly unknown[])[]> {
  const account = await here.account();
  here.simulator.program(reply, { times: Infinity });
  for (let i = 0; i < 2; i++) {
    const answer = await ask(here, client, account.key, limited(client, "responses", 400, { stream }));
    await answer.text();
    await here.requestEnd(answer.headers.get("x-request-id") ?? "");
  }
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  return lines.map((line) => [line.kind, formatUsd(line.amount), memoOf(line).paid]);
}

for (const client of PROTOCOL_LIST) {
  for (const stream of [false, true]) {
    const what = `${client} client, ${stream ? "stream" : "whole reply"}`;
    test(`${what}: the allowance pays the first refusal with a count of 0.30 USD, and the client the second`, async () => {
      assert.deepEqual(await askedTwice(client, stream, failed(stream, "cyber_policy", COUNT)), [
        ["absorbed", "0.30", undefined],
        ["usage", "0.30", "allowance_used"],
      ]);
    });

    test(`${what}: a refusal without a count costs nothing`, async () => {
      assert.deepEqual(await askedTwice(client, stream, failed(stream, "cyber_policy", null)), []);
    });

    test(`${what}: a failure of the server is absorbed each time`, async () => {
      const lines = await askedTwice(client, stream, failed(stream, "server_error", COUNT));
      assert.deepEqual(new Set(lines.map(([kind]) => kind)), new Set(["absorbed"]));
    });
  }
}
