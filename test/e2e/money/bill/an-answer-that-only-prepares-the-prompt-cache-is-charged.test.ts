/**
 * ARCHITECTURE.md promise 3: with `prompt_cache_options.prewarm` a server reads the request into its prompt cache and writes
 * nothing. Its answer is complete without a choice, and its count is charged. Before, a whole chat completion of this form
 * counted as a failure of its server: the client paid nothing, and read from the cache afterwards.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, assertAtRest, type Fields, usageLines } from "../../protocol/whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** What 5,000 tokens cost that are written to the cache, in nano-dollars. */
const WRITTEN = 5_000n * 1_250n;
const CHAT = {
  ...{ id: "c", object: "chat.completion", created: 1, model: "chat-1", choices: [] },
  usage: {
    ...{ prompt_tokens: 5_000, completion_tokens: 0, total_tokens: 5_000 },
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 5_000 },
  },
};
const RESPONSE = {
  ...{ id: "resp_1", object: "response", created_at: 1, model: "responses-1", status: "completed", output: [] },
  usage: {
    ...{ input_tokens: 5_000, output_tokens: 0, total_tokens: 5_000 },
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 5_000 },
  },
};
const FRAMES = {
  chat: [{ data: { ...CHAT, object: "chat.completion.chunk" } }, { data: "[DONE]" }],
  responses: [
    { data: { type: "response.created", response: { ...RESPONSE, status: "in_progress", usage: null } } },
    { data: { type: "response.completed", response: RESPONSE } },
  ].map(({ data }) => ({ event: data.type, data })),
};
const ASKED: Fields = { prompt_cache_options: { prewarm: true } };

async function chargeFor(
  protocol: Protocol,
  fields: Fields,
): Promise<readonly [status: number, kind?: string, amount?: bigint]> {
  const account = await here.account();
  const reply = await ask(here, protocol, account.key, fields);
  await reply.text();
  await assertAtRest(here, account);
  const [line] = await usageLines(here, account);
  return line ? [reply.status, line.kind, line.amount] : [reply.status];
}

for (const [protocol, body] of [
  ["chat", CHAT],
  ["responses", RESPONSE],
] as const) {
  test(`${protocol}: a whole answer`, async () => {
    here.simulator.program({ body });
    assert.deepEqual(await chargeFor(protocol, ASKED), [200, "usage", WRITTEN]);
  });

  test(`${protocol}: a stream`, async () => {
    here.simulator.program({ frames: FRAMES[protocol] });
    assert.deepEqual(await chargeFor(protocol, { ...ASKED, stream: true }), [200, "usage", WRITTEN]);
  });
}

for (const [asked, fields] of [
  ["any other request", {}],
  ["a request that says that it is no preparation", { prompt_cache_options: { prewarm: false } }],
] as const) {
  test(`chat: without a choice an answer to ${asked} is a failure, and costs its client nothing`, async () => {
    here.simulator.program({ body: CHAT }, { times: 10 });
    const [status, kind] = await chargeFor("chat", fields);
    assert.notEqual(status, 200);
    assert.equal(kind, "absorbed");
  });
}
