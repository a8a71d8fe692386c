// docs/failure-model.md row B8: a restart, a failover or SCRIPT FLUSH makes Redis forget scripts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "./asks.ts";
import { openUrl } from "./benches.ts";

test("requests succeed although SCRIPT FLUSH runs before every step", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  try {
    const tag = await makeAccount(store, "Flush", { funds: 1_000n });
    for (let number = 1; number <= 50; number++) {
      const request = admitAsk({ tag, requestId: ridOf(number) });
      await redis.command("SCRIPT", "FLUSH");
      const permit = admitted(await store.admit(request));
      await redis.command("SCRIPT", "FLUSH");
      assert.equal((await store.settle(settleAsk(request, permit, { amount: 1n }))).outcome, "settled");
    }
    assert.equal((await store.getAccount(tag))?.balance, 950n);
  } finally {
    await store.close();
    await redis.stop();
  }
});
