/**
 * Promise 3 with Redis: the allowance for disconnects is one per account, shared by all gateways. Row D1 of
 * docs/failure-model.md.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { untilSettled } from "../../../unit/settle/lossy-scene.ts";
import { PATIENT } from "../../../unit/store/benches.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { bodyOfTokens, leaveAtOnce, linesOf, sumOf } from "./disconnecting-clients.ts";
import { pricedConfig } from "./rig.ts";

test("of twelve disconnects at 0.06 each on two gateways at once, eight are absorbed within 0.50 and four are charged", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const start = async () => {
    // With a clock that stands still, a settlement that Redis did not answer in time would never be sent again.
    const store = { store: redis.url, storeTimes: PATIENT };
    const gateway = await startGatewayHere({ config: pricedConfig, ...store, clock: new HandClock() });
    t.after(() => gateway.close());
    return gateway;
  };
  const [one, other] = [await start(), await start()];
  const account = await one.account({ usd: "5" });
  const fields = bodyOfTokens("chat", 20_000, { stream: true });
  await Promise.all([one, other].map((gateway) => leaveAtOnce(gateway, "chat", account, 6, fields)));
  for (const { adminUrl } of [one, other]) await untilSettled(adminUrl);
  const lines = await linesOf(one, account);
  assert.deepEqual([lines.length, sumOf(lines, "usage"), sumOf(lines, "absorbed")], [12, "0.24", "0.48"]);
  assert.equal((await other.store.getAccount(account.tag))?.balance, 4_760_000_000n);

  // Neither gateway has any of the allowance left.
  for (const [i, gateway] of [one, other].entries()) {
    await leaveAtOnce(gateway, "chat", account, 1, fields);
    await untilSettled(gateway.adminUrl);
    const later = await linesOf(gateway, account);
    assert.deepEqual([sumOf(later, "usage"), sumOf(later, "absorbed")], [["0.30", "0.36"][i], "0.48"]);
  }
});
