/**
 * ARCHITECTURE.md promise 1: no upstream is asked for more output than the hold covers, in any direction; if it sends
 * more all the same, that is charged. Before this, at 3 and 15 USD per million tokens, 0.00008 was charged for 100,000
 * tokens with `max_tokens: 128000`, and 0.00008 for the 60,000 tokens of a stream without a limit.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Changes } from "../../../rig/config.ts";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { ask, type Fields, LIMIT_FIELD, memoOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { asked, billed, DIRECTIONS, limited, limitSent, MAX_OUTPUT, pricedConfig, sentUpstream } from "./rig.ts";

/** The chat server takes the reasoning effort in the form that OpenRouter uses. */
const ROUTER: Changes = { models: { "chat-1": { capabilities: { thinking_switch: "reasoning" } } } };

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: (places) => pricedConfig(places, ROUTER) });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

for (const [client, upstream] of DIRECTIONS) {
  for (const stream of [false, true]) {
    const name = `${client} on ${upstream}${stream ? ", streamed" : ""}`;

    test(`${name}: a limit above the model's is lowered and reported; output above it is charged`, async () => {
      const account = await here.account();
      here.simulator.program({ text: "word", usage: { input: 26, output: 100_000 }, ignoreLimit: true });
      const { reply } = await asked(here, client, account, limited(client, upstream, 128_000, { stream }));
      assert.equal(reply.headers.get("x-tollgate-clamped"), `${LIMIT_FIELD[client]}=${MAX_OUTPUT}`);
      assert.equal(limitSent(here), MAX_OUTPUT);
      const { usd, absorbedUsd, memo } = await billed(here, account);
      assert.deepEqual([usd, absorbedUsd], ["1.500078", "0.00"]);
      assert.deepEqual([memo.counted, memo.surprise], ["upstream", "output_above_max"]);
    });
  }

  if (client === "messages") continue; // Its clients always name a limit.
  test(`${client} on ${upstream}: a stream without a limit gets the model's, and output above it is charged`, async () => {
    const account = await here.account();
    here.simulator.program({ text: "word", usage: { input: 26, output: 60_000 }, ignoreLimit: true });
    const { reply } = await asked(here, client, account, limited(client, upstream, undefined, { stream: true }));
    assert.equal(reply.headers.get("x-tollgate-clamped"), null);
    assert.equal(limitSent(here), MAX_OUTPUT);
    const { usd } = await billed(here, account);
    assert.equal(usd, "0.900078");
  });
}

test("a limit within the model's passes unchanged, byte for byte", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const account = await here.account();
    const { reply } = await asked(here, protocol, account, limited(protocol, protocol, MAX_OUTPUT));
    assert.equal(reply.headers.get("x-tollgate-clamped"), null);
    assert.equal(limitSent(here), MAX_OUTPUT);
  }
});

test("chat: of two limits each is lowered separately, and the lower one stays", async () => {
  const account = await here.account();
  const { reply } = await asked(here, "chat", account, { max_tokens: 128_000, max_completion_tokens: 700 });
  assert.equal(reply.headers.get("x-tollgate-clamped"), `max_tokens=${MAX_OUTPUT}`);
  const { max_tokens, max_completion_tokens } = sentUpstream(here);
  assert.deepEqual([max_tokens, max_completion_tokens], [MAX_OUTPUT, 700]);
});

test("messages: a thinking budget is lowered together with its limit", async () => {
  const account = await here.account();
  await asked(here, "messages", account, { max_tokens: 64_000, thinking: { type: "enabled", budget_tokens: 60_000 } });
  const { max_tokens, thinking } = sentUpstream(here);
  assert.deepEqual([max_tokens, thinking], [MAX_OUTPUT, { type: "enabled", budget_tokens: MAX_OUTPUT - 1 }]);
});

test("responses: a limit below the least that an upstream takes is held at that least", async () => {
  const account = await here.account();
  here.simulator.program({ text: "word ".repeat(40) });
  await asked(here, "chat", account, limited("chat", "responses", 1));
  assert.equal(limitSent(here), 16);
  const { memo, line } = await billed(here, account);
  assert.equal(memo.output, 16);
  assert.ok(line.amount <= BigInt(memo.hold as string));
});

test("a compaction has no limit to lower", async () => {
  const account = await here.account();
  const reply = await fetch(`${here.url}/v1/responses/compact`, {
    method: "POST",
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "responses-1", input: "hello" }),
  });
  await reply.text();
  assert.equal(reply.headers.get("x-tollgate-clamped"), null);
  assert.equal(limitSent(here), undefined);
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  assert.ok((await usageLines(here, account)).every((line) => BigInt(memoOf(line).hold as string) > 0n));
});

test("chat: a thinking budget that the upstream counts in addition to the limit is held; 0.10 was charged before, 9.00 is due", async () => {
  const fields = limited("chat", "chat", 16, { thinking_budget: 20_000 });
  const poor = await here.account({ usd: "0.10" });
  const refused = await Promise.all(Array.from({ length: 30 }, () => ask(here, "chat", poor.key, fields)));
  assert.deepEqual([...new Set(refused.map(({ status }) => status))], [403]);
  const rich = await here.account({ usd: "1" });
  here.simulator.program({ text: "word", usage: { input: 10, output: 20_016, reasoning: 20_000 }, ignoreLimit: true });
  await asked(here, "chat", rich, fields);
  const { usd, absorbedUsd, memo } = await billed(here, rich);
  assert.deepEqual([usd, absorbedUsd, memo.surprises], ["0.30027", "0.00", undefined]);
});

/** Each spelling of a thinking budget, and its path in the upstream's body. */
const BUDGETS: readonly (readonly [param: string, fields: (tokens: number) => Fields])[] = [
  ["reasoning.max_tokens", (tokens) => ({ reasoning: { max_tokens: tokens, exclude: true } })],
  ["thinking.budget_tokens", (tokens) => ({ thinking: { type: "enabled", budget_tokens: tokens } })],
  ["chat_template_kwargs.thinking_budget", (tokens) => ({ chat_template_kwargs: { thinking_budget: tokens } })],
  ["thinking_budget", (tokens) => ({ thinking_budget: tokens })],
  ["thinking_token_budget", (tokens) => ({ thinking_token_budget: tokens })],
  ["thinking_budget_tokens", (tokens) => ({ thinking_budget_tokens: tokens })],
  ["reasoning_budget", (tokens) => ({ reasoning_budget: tokens })],
];

for (const [param, fields] of BUDGETS) {
  test(`chat: ${param} above what the model can produce is lowered to what is held, and reported`, async () => {
    const account = await here.account();
    const { reply } = await asked(here, "chat", account, limited("chat", "chat", 16, fields(100_000)));
    assert.equal(reply.headers.get("x-tollgate-clamped"), `${param}=${MAX_OUTPUT}`);
    const lowered = fields(MAX_OUTPUT);
    const sent = sentUpstream(here);
    for (const name of Object.keys(lowered)) assert.deepEqual(sent[name], lowered[name]);
    assert.equal(limitSent(here), 16);
  });
}

test("responses: a thinking budget is lowered too; text stays text", async () => {
  const account = await here.account();
  const wish = { reasoning: { effort: "high", max_tokens: "100000" } };
  const { reply } = await asked(here, "responses", account, limited("responses", "responses", 16, wish));
  assert.equal(reply.headers.get("x-tollgate-clamped"), `reasoning.max_tokens=${MAX_OUTPUT}`);
  assert.deepEqual(sentUpstream(here).reasoning, { effort: "high", max_tokens: String(MAX_OUTPUT) });
});

test("chat: a thinking budget is lowered together with a limit that the funds lower", async () => {
  const account = await here.account({ usd: "0.10" });
  const fields = limited("chat", "chat", 30_000, { thinking_budget: 20_000, reasoning_budget: 5 });
  const { reply } = await asked(here, "chat", account, fields);
  const limit = limitSent(here);
  assert.ok(Number(limit) < 10_000);
  const told = `${LIMIT_FIELD.chat}=${limit}, thinking_budget=${limit}`;
  assert.equal(reply.headers.get("x-tollgate-clamped"), told);
  const { thinking_budget, reasoning_budget } = sentUpstream(here);
  assert.deepEqual([thinking_budget, reasoning_budget], [limit, 5]);
});

test("a messages client's thinking budget does not exceed its limit on a chat server that takes budgets", async () => {
  const account = await here.account();
  const thinking = { type: "enabled", budget_tokens: 100_000 };
  await asked(here, "messages", account, { model: "chat-1", max_tokens: 2_000, thinking });
  assert.deepEqual(sentUpstream(here).reasoning, { max_tokens: 2_000 });
});
