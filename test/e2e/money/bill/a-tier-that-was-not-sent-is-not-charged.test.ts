/**
 * Promise 3: the price of a service tier is charged only if the tier was sent to the upstream. A translation that drops
 * the tier asks for the standard one, and the hold covers its price. Before this, half the price was charged for `flex`
 * and six times the price for `fast` although neither was sent.
 */

import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { baseConfig, each } from "../../../rig/config.ts";
import { type ConfigPlaces, type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { type Fields, memoOf, usageLines } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { bodyOfTokens, leaveAtOnce, linesOf, sumOf } from "./disconnecting-clients.ts";
import { asked, billed, limited, pricedConfig, sentUpstream } from "./rig.ts";

/**
 * Flex costs half, fast costs six times; `flex+pro` has a price as a combination, and `pro` has no price of its own.
 */
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
  // A chat server of another vendor does not know the tier.
  ["responses", "chat-1", FLEX, {}, "0.006"],
  ["responses", "responses-1", { ...FLEX, ...PRO }, { ...FLEX, ...PRO }, "0.018", "flex+pro"],
  ["chat", "responses-1", { ...FLEX, ...PRO }, FLEX, "0.003", "flex"],
  // A tier that an operator's own rule removes is not charged either.
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
      // The hold covers the most expensive tier that may be sent: 400 output tokens at 5 nano-dollars, times 1,000.
      assert.ok(BigInt(charge.memo.hold as string) >= 400n * 5n * BigInt(charge.line.amount / 1_000n / 2n));
    });
  }
}

test("each attempt costs the tier it was sent with: flex for the one that broke off, standard for the one that answered", async () => {
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

test("a client that disconnects before the first byte of a translated attempt is charged the tier that was sent", async () => {
  const account = await here.account({ usd: "5" });
  await leaveAtOnce(here, "chat", account, 10, bodyOfTokens("chat", 20_000, { ...FLEX, model: "messages-1" }));
  const lines = await linesOf(here, account);
  assert.deepEqual([sumOf(lines, "usage"), sumOf(lines, "absorbed")], ["0.12", "0.48"]);
  for (const line of lines) assert.equal(memoOf(line).tier, undefined);
});
