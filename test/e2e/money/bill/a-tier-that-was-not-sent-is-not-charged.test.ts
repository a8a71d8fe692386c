/**
 * Promise 3: a service tier is charged where its upstream was asked for it. A translation that leaves it out asks for the
 * standard one, whose price is held for beforehand. Charged before: half for `flex` and six times for `fast` where nothing
 * of either was sent.
 */

import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { baseConfig, each } from "../../../rig/config.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { asked, billed, limited, pricedConfig, sentUpstream } from "./house.ts";
import { bodyOfTokens, leaveAtOnce, linesOf, sumOf } from "./leavers.ts";

/** Flex at half, fast at six times; `flex+pro` has a price as a pair, and `pro` has none of its own. */
const PRICE = {
  input: "3",
  output: "15",
  tiers: {
    flex: { input: "1.5", output: "7.5" },
    fast: { input: "18", output: "90" },
    "flex+pro": { input: "9", output: "45" },
  },
};

function tieredConfig(places: ConfigPlaces): string {
  const { models, groups } = baseConfig(places);
  const model = { plans: ["free"], price: PRICE, context_tokens: 400000, max_output_tokens: 32000 };
  const responses = [{ upstream: "up-responses" }];
  return pricedConfig(places, {
    models: {
      ...each(Object.keys(models), { price: PRICE }),
      "two-ways": { ...model, routes: [{ upstream: "up-chat" }, { upstream: "up-messages", priority: 1 }] },
      "no-reasoning": { ...model, routes: responses, rules: [{ drop: ["reasoning"] }] },
      "no-tier": { ...model, routes: responses, rules: [{ set: { user: "operator" } }] },
    },
    groups: { money: { models: [...groups.money.models, "two-ways", "no-reasoning", "no-tier"] } },
  });
}

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({ config: tieredConfig, clock: new HandClock() });
});
afterEach(() => {
  here.simulator.release();
  here.simulator.clearPrograms();
});
after(() => here.close());

const USAGE = { input: 1_000, output: 200 };
const FLEX = { service_tier: "flex" };
const FAST = { speed: "fast" };

const PRO = { reasoning: { mode: "pro" } };

type Row = readonly [client: Protocol, model: string, fields: Fields, sent: Fields, usd: string, tier?: string];
const ROWS: readonly Row[] = [
  ["chat", "messages-1", FLEX, {}, "0.006"],
  ["responses", "messages-1", FLEX, {}, "0.006"],
  ["messages", "chat-1", FAST, {}, "0.006"],
  ["messages", "responses-1", FAST, {}, "0.006"],
  ["messages", "messages-1", FAST, FAST, "0.036", "fast"],
  ["chat", "chat-1", FLEX, FLEX, "0.003", "flex"],
  ["chat", "responses-1", FLEX, FLEX, "0.003", "flex"],
  // A chat server of another vendor does not know it.
  ["responses", "chat-1", FLEX, {}, "0.006"],
  ["responses", "responses-1", { ...FLEX, ...PRO }, { ...FLEX, ...PRO }, "0.018", "flex+pro"],
  ["chat", "responses-1", { ...FLEX, ...PRO }, FLEX, "0.003", "flex"],
  // What an operator's own rule leaves out is not charged either.
  ["responses", "no-reasoning", { ...FLEX, ...PRO }, FLEX, "0.003", "flex"],
  ["responses", "no-tier", FLEX, FLEX, "0.003", "flex"],
];

for (const [client, model, fields, sent, usd, tier] of ROWS) {
  for (const stream of [true, false]) {
    test(`${client} on ${model}, ${stream ? "streamed" : "whole"}, ${JSON.stringify(fields)}: ${usd}`, async () => {
      const account = await here.account();
      here.simulator.program({ text: "Hello", usage: USAGE });
      await asked(here, client, account, { ...limited(client, "chat", 400, fields), model, stream });
      const { service_tier, speed, reasoning } = sentUpstream(here);
      assert.deepEqual(JSON.parse(JSON.stringify({ service_tier, speed, reasoning })), sent);
      const charge = await billed(here, account);
      assert.deepEqual([charge.usd, charge.memo.tier, charge.memo.cost], [usd, tier, String(charge.line.amount)]);
      // It is held for the dearest that may be sent: 400 tokens of output at 5 nano-dollars to each of its 1,000.
      assert.ok(BigInt(charge.memo.hold as string) >= 400n * 5n * BigInt(charge.line.amount / 1_000n / 2n));
    });
  }
}

test("each try costs what it was sent: flex where it broke off, the standard price where the answer came from", async () => {
  const account = await here.account();
  here.simulator.program({ fault: { endAfterEvents: 0 } });
  here.simulator.program({ text: "Hello", usage: USAGE });
  await asked(here, "chat", account, { ...limited("chat", "chat", 400, FLEX), model: "two-ways", stream: true });
  const { line, memo, usd } = await billed(here, account);
  assert.deepEqual([usd, memo.tier, String(line.amount)], ["0.006", undefined, memo.cost]);
  const [, failed] = await usageLines(here, account);
  const lost = memoOf(failed);
  assert.deepEqual([lost.tier, lost.price_input, lost.upstream], ["flex", "1500000000", "up-chat"]);
});

test("who leaves a translated try before the first byte pays the tier that it was sent", async () => {
  const account = await here.account({ usd: "5" });
  await leaveAtOnce(here, "chat", account, 10, bodyOfTokens("chat", 20_000, { ...FLEX, model: "messages-1" }));
  const lines = await linesOf(here, account);
  assert.deepEqual([sumOf(lines, "usage"), sumOf(lines, "absorbed")], ["0.12", "0.48"]);
  for (const line of lines) assert.equal(memoOf(line).tier, undefined);
});
