/**
 * Promise 3: a client that disconnects before the first byte is charged the input that was sent for it. Rules of a
 * group may add text that only keys of this group pay for, whereas the token bucket uses one figure for all groups.
 * Before this, the text of the other group's rules was charged as well: 0.018 USD instead of 0.006, the whole hold.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";
import { memoOf } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { bodyOfTokens, leaveAtOnce, linesOf, sumOf } from "./disconnecting-clients.ts";
import { pricedConfig } from "./rig.ts";

const TEXT = "a".repeat(24_000);

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      pricedConfig(places, {
        client_gone_allowance: "0",
        groups: {
          "double-money": { rules: [{ system: { text: TEXT } }] },
          "limited-money": { limits: { requests_per_minute: undefined, concurrency: undefined } },
        },
      }),
    clock: new HandClock(),
  });
});
after(() => here.close());

for (const stream of [true, false]) {
  for (const [group, input, usd] of [
    ["money", 2_000, "0.006"],
    ["limited-money", 2_000, "0.006"],
    // Plus the tokens that frame the text.
    ["double-money", 10_022, "0.060132"],
  ] as const) {
    test(`${group}, ${stream ? "streamed" : "whole"}: ${input} tokens of input, ${usd}`, async () => {
      const account = await here.account({ group });
      await leaveAtOnce(here, "chat", account, 1, bodyOfTokens("chat", 2_000, { stream }));
      const lines = await linesOf(here, account);
      assert.deepEqual([lines.length, sumOf(lines, "usage"), sumOf(lines, "absorbed")], [1, usd, "0.00"]);
      assert.equal(memoOf(lines[0]).input, input);
    });
  }
}

test("the token bucket refunds what it took, not what is charged", async () => {
  const account = await here.account({ group: "limited-money" });
  await leaveAtOnce(here, "chat", account, 1, bodyOfTokens("chat", 2_000));
  const limits = await here.store.readLimits(account.tag, "limited-money");
  const debt = limits?.tokens?.debt ?? 0;
  // Some tokens may have drained meanwhile; 8,000 tokens more or less are the other group's text.
  assert.ok(debt > 1_000 * 60_000 && debt <= 2_000 * 60_000, `${debt}`);
});
