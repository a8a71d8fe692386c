/**
 * If a model fails (an invalid tool call, an abort), its healthy server reports this in the reply. A client can cause
 * it with its tools, so it must not eject the upstream for other clients (ARCHITECTURE.md promise 10). A failure that
 * the request causes is not retried, and is absorbed within the account's allowance (promise 3).
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, settledMetrics, startGatewayHere } from "../../../rig/gateway.ts";
import { DIRECTIONS, limited, pricedConfig } from "../../money/bill/rig.ts";
import { ask, assertAtRest, type Fields, memoOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

/** A whole reply that ends with this stop reason: 20,000 tokens in and 1,500 out, 0.0825 USD. */
const BODIES: Readonly<Record<Protocol, (word: string) => Fields>> = {
  chat: (word) => ({
    ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
    choices: [{ index: 0, message: { role: "assistant", content: "Half" }, finish_reason: word }],
    usage: { prompt_tokens: 20_000, completion_tokens: 1_500, total_tokens: 21_500 },
  }),
  messages: (word) => ({
    ...{ id: "msg_1", type: "message", role: "assistant", model: "m", stop_reason: word, stop_sequence: null },
    content: [{ type: "text", text: "Half" }],
    usage: { input_tokens: 20_000, output_tokens: 1_500 },
  }),
  responses: (word) => ({
    ...{ id: "resp_1", object: "response", created_at: 1, model: "m", status: "incomplete", output: [] },
    incomplete_details: { reason: word },
    usage: { input_tokens: 20_000, output_tokens: 1_500, total_tokens: 21_500 },
  }),
};

async function healthyOf(upstream: string): Promise<string | undefined> {
  const metrics = await settledMetrics(here.adminUrl);
  return new RegExp(`tollgate_upstream_healthy\\{upstream="${upstream}"\\} (\\d)`).exec(String(metrics))?.[1];
}

for (const [client, upstream] of DIRECTIONS) {
  for (const word of ["function_call_filter: MALFORMED_FUNCTION_CALL", "TOO_MANY_TOOL_CALLS"]) {
    test(`${client} on ${upstream}: ${word} is tried once, absorbed within the allowance, then charged`, async () => {
      const account = await here.account({ usd: "5" });
      here.simulator.program({ body: BODIES[upstream](word) }, { times: 20 });
      const before = here.simulator.requests.length;
      const times = 8;
      for (let i = 0; i < times; i++) {
        const reply = await ask(here, client, account.key, limited(client, upstream, 8_000));
        assert.equal(reply.status, 403, await reply.text());
        await assertAtRest(here, account);
      }
      assert.equal(here.simulator.requests.length - before, times, "a retry would be charged again");
      const lines = await usageLines(here, account);
      // 0.0825 USD each: six fit into 0.50.
      assert.deepEqual(lines.map(({ kind }) => kind).sort(), [...Array(6).fill("absorbed"), "usage", "usage"]);
      for (const line of lines) assert.deepEqual([memoOf(line).input, memoOf(line).output], [20_000, 1_500]);
      assert.equal(await healthyOf(`up-${upstream}`), "1");
    });
  }
}

test("a stream that showed nothing before its tool call failed is absorbed within the allowance, too", async () => {
  const account = await here.account({ usd: "5" });
  const chunk = (choice: Fields, members: Fields = {}) => ({
    data: { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [choice], ...members },
  });
  const { usage } = BODIES.chat("");
  const failed = chunk({ index: 0, delta: {}, finish_reason: "MALFORMED_FUNCTION_CALL" }, { usage });
  const frames = [chunk({ index: 0, delta: { role: "assistant", content: "" } }), failed, { data: "[DONE]" }];
  here.simulator.program({ frames }, { times: 20 });
  for (let i = 0; i < 8; i++) {
    const reply = await ask(here, "chat", account.key, limited("chat", "chat", 8_000, { stream: true }));
    assert.match(await reply.text(), /"error"/);
    await assertAtRest(here, account);
  }
  const kinds = (await usageLines(here, account)).map(({ kind }) => kind).sort();
  assert.deepEqual(kinds, [...Array(6).fill("absorbed"), "usage", "usage"]);
});

test("a stream that was shown in part before its tool call failed costs no more than its hold", async () => {
  const account = await here.account({ usd: "5" });
  const chunk = (choice: Fields, members: Fields = {}) => ({
    data: { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [choice], ...members },
  });
  const { usage } = BODIES.chat("");
  const failed = chunk({ index: 0, delta: {}, finish_reason: "MALFORMED_FUNCTION_CALL" }, { usage });
  const frames = [chunk({ index: 0, delta: { role: "assistant", content: "Half" } }), failed, { data: "[DONE]" }];
  here.simulator.program({ frames });
  const reply = await ask(here, "chat", account.key, limited("chat", "chat", 50, { stream: true }));
  assert.match(await reply.text(), /Half.*"error"/s);
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.deepEqual(lines.map(({ kind }) => kind).sort(), ["absorbed", "usage"]);
  const sum = lines.reduce((all, { amount }) => all + amount, 0n);
  assert.equal(sum, 82_500_000n, "everything that the server counted is in the ledger");
  const paid = lines.find(({ kind }) => kind === "usage");
  assert.equal(`${paid?.amount}`, memoOf(paid).hold);
});

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: an abort is retried once, is absorbed by the operator, and does not eject the upstream`, async () => {
    const account = await here.account({ usd: "5" });
    here.simulator.program({ body: BODIES[protocol]("abort") }, { times: 20 });
    const before = here.simulator.requests.length;
    const times = 10;
    for (let i = 0; i < times; i++) {
      const reply = await ask(here, protocol, account.key, limited(protocol, protocol, 8_000));
      assert.equal(reply.status, 403, await reply.text());
    }
    const asked = here.simulator.requests.length - before;
    assert.equal(asked, 2 * times);
    await assertAtRest(here, account);
    const lines = await usageLines(here, account);
    assert.deepEqual([lines.length, new Set(lines.map(({ kind }) => kind))], [asked, new Set(["absorbed"])]);
    assert.equal(await healthyOf(`up-${protocol}`), "1");
    here.simulator.clearPrograms();
    const other = await ask(here, protocol, (await here.account()).key, limited(protocol, protocol, 50));
    assert.equal(other.status, 200, await other.text());
  });

  test(`${protocol}: a server that reports overload in this way is ejected`, async () => {
    const account = await here.account({ usd: "5" });
    here.simulator.program({ body: BODIES[protocol]("engine_overloaded") }, { times: 20 });
    for (let i = 0; i < 10; i++) await (await ask(here, protocol, account.key, limited(protocol, protocol, 50))).text();
    assert.equal(await healthyOf(`up-${protocol}`), "0");
  });
}
