/**
 * ARCHITECTURE.md promise 3: the upstream's last count is charged, however surprising it is, as far as the funds go.
 * The rest is absorbed. The ledger line marks the surprise; it is logged once and counted. Before this, at 3 and 15 USD
 * per million tokens, 1.20 was charged for 600,000 input tokens on a context of 400,000; and nothing was charged, while
 * the hold stayed, if the amount exceeded what a store can hold. Rows C10 and 64 of docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import { type GatewayHere, settledMetrics, startGatewayHere } from "../../../rig/gateway.ts";
import { PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { asked, billed, DIRECTIONS, limited, pricedConfig } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: pricedConfig });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

for (const [client, upstream] of DIRECTIONS) {
  test(`${client} on ${upstream}: input above the context size is charged`, async () => {
    for (const stream of [false, true]) {
      const account = await here.account();
      here.simulator.program({ text: "word", usage: { input: 600_000, output: 10 } });
      await asked(here, client, account, limited(client, upstream, 100, { stream }));
      const { usd, memo } = await billed(here, account);
      assert.deepEqual([usd, memo.surprise], ["1.80015", "input_above_context"]);
    }
  });
}

test("the part that neither the hold nor free funds cover is absorbed under its own cause", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const account = await here.account({ usd: "1" });
    here.simulator.program({ text: "word", usage: { input: 600_000, output: 50_000 }, ignoreLimit: true });
    await asked(here, protocol, account, { stream: true });
    const { usd, absorbedUsd, memo } = await billed(here, account);
    assert.deepEqual([usd, absorbedUsd], ["1.00", "1.55"]);
    assert.equal(memo.surprise, "output_above_max,input_above_context");
    const absorbed = (await here.store.readLedger(account.tag, 0, 100)).find(({ kind }) => kind === "absorbed");
    assert.equal(absorbed?.debit, "absorbed:over_hold");
  }
  const page = await settledMetrics(here.adminUrl);
  const shown = [...page.matchAll(/^tollgate_absorbed_usd_total\{.*cause="over_hold".*\} (\S+)$/gm)];
  const sum = shown.reduce((total, [, usd]) => total + Number(usd), 0);
  assert.equal(sum.toFixed(2), (1.55 * PROTOCOL_LIST.length).toFixed(2), "the metrics show the absorbed amount");
});

test("a count above the limit that was sent is charged and marked in the line", async () => {
  const account = await here.account();
  here.simulator.program({ text: "word", usage: { input: 10, output: 1_000 }, ignoreLimit: true });
  await asked(here, "chat", account, limited("chat", "chat", 100));
  const { usd, memo } = await billed(here, account);
  assert.deepEqual([usd, memo.surprise], ["0.01503", "output_above_limit"]);
});

test("a surprising count is logged once per request, without content, and counted", async () => {
  const account = await here.account();
  const logged = here.log.length;
  here.simulator.program({ text: "a canary", usage: { input: 600_000, output: 50_000 }, ignoreLimit: true });
  await asked(here, "chat", account, { stream: true });
  await billed(here, account);
  const lines = here.log.slice(logged).filter(({ level }) => level === "warn");
  assert.equal(lines.length, 1, JSON.stringify(lines));
  const { upstream, model, surprise, input_tokens, output_tokens } = lines[0] ?? {};
  assert.deepEqual(
    { upstream, model, surprise, input_tokens, output_tokens },
    {
      upstream: "up-chat",
      model: "chat-1",
      surprise: "output_above_max,input_above_context",
      input_tokens: 600_000,
      output_tokens: 50_000,
    },
  );
  assert.ok(!JSON.stringify(lines).includes("canary"));
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  for (const kind of ["output_above_max", "input_above_context"]) {
    const line = new RegExp(
      `^tollgate_surprising_counts_total\\{upstream="up-chat",model="chat-1",kind="${kind}"\\} [1-9]`,
      "m",
    );
    assert.match(page, line);
  }
});

test("no count, however large, leaves a hold or a dead letter behind", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const account = await here.account();
    const most = 1_000_000_000;
    here.simulator.program({
      text: "word",
      usage: { input: most, cached: most, cacheWrite: most, cacheWrite1h: most, output: most },
      ignoreLimit: true,
    });
    await asked(here, protocol, account, { stream: true });
    const { memo } = await billed(here, account);
    assert.ok(memo.surprise !== undefined || memo.counted === "estimate");
  }
  const page = await (await fetch(`${here.adminUrl}/metrics`)).text();
  assert.match(page, /^tollgate_dead_letters 0$/m);
});

test("messages: calls of unknown tools cost nothing and do not fill the line", async () => {
  const account = await here.account();
  const server_tool_use = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, i) => [`tool_number_${i}_requests`, 900_000_000]),
  );
  const usage = { input_tokens: 10, output_tokens: 10, server_tool_use };
  here.simulator.program({
    body: { id: "msg_1", type: "message", role: "assistant", content: [{ type: "text", text: "x" }], usage },
  });
  await asked(here, "messages", account, {});
  const { usd, memo } = await billed(here, account);
  assert.deepEqual([usd, memo.tool_calls], ["0.00018", {}]);
});
