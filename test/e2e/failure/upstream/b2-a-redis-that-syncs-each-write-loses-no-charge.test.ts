/**
 * docs/failure-model.md row B2: a Redis that syncs each write is killed repeatedly under load: each request is charged
 * once, and no key is lost.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, chat, ledgerOf, nano, openAccount, startDeployment, untilNothingHeld } from "../../money/shared/rig.ts";

const FUNDS = 10_000_000_000n;
const KILLS = 5;

test("five kills under load lose no charge and no key", async () => {
  const redisArgs = ["--appendonly", "yes", "--appendfsync", "always"];
  const made = await startDeployment({ store: "redis", redisArgs });
  try {
    const [gateway] = made.gateways;
    const { redis } = made;
    assert.ok(gateway && redis);
    const { key, name } = await openAccount(gateway, { funds: FUNDS });
    let answered = 0;
    let refused = 0;
    const askOnce = async (): Promise<void> => {
      const answer = await ask(gateway, key, chat());
      if (answer.status === 200) answered += 1;
      else {
        assert.deepEqual([answer.status, answer.cause], [503, "store_unavailable"]);
        refused += 1;
      }
    };
    for (let kill = 0; kill < KILLS; kill++) {
      const load = Array.from({ length: 10 }, askOnce);
      await load[0];
      await Promise.all([...load, redis.crash()]);
      // The breaker's probe notices by itself that Redis is back.
      for (const before = answered; answered === before; ) await askOnce();
    }
    const { balance } = await untilNothingHeld(gateway, name);
    const lines = (await ledgerOf(gateway, name)).filter((line) => line.kind === "usage");
    assert.equal(lines.length, answered, `${answered} answered, ${refused} refused`);
    assert.equal(new Set(lines.map((line) => line.reference)).size, answered);
    const spent = lines.reduce((sum, line) => sum + nano(line.usd), 0n);
    assert.equal(balance, FUNDS - (spent < 0n ? -spent : spent));
  } finally {
    await made.close();
  }
});
