// docs/failure-model.md row 36: the check-then-act race that every comparable gateway has had.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, causeOf, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import { embeddedBench, openUrl } from "./benches.ts";
import { assertIdentities } from "./contract-settle.ts";

const PARALLEL = 200;

async function race(stores: readonly Store[], round: number): Promise<void> {
  const [first] = stores as [Store];
  // Three full holds, and a rest below the minimum hold.
  const tag = await makeAccount(first, `Race${round}x`, { funds: 309n });
  const groups = [terms({ holdFull: 100n, holdMin: 10n, concurrency: 1_000 })];
  const asks = Array.from({ length: PARALLEL }, (_, i) => admitAsk({ tag, requestId: ridOf(i + 1), groups }));
  const store = (i: number) => stores[i % stores.length] as Store;
  const answers = await Promise.all(asks.map((ask, i) => store(i).admit(ask)));
  const causes = answers.map(causeOf);
  assert.equal(causes.filter((cause) => cause === "admitted").length, 3);
  assert.equal(causes.filter((cause) => cause === "insufficient_balance").length, PARALLEL - 3);
  const during = await first.inspect(tag);
  assert.ok(during);
  assertIdentities(during);
  const winners = answers.flatMap((answer, i) => (answer.outcome === "admitted" ? [i] : []));
  await Promise.all(
    winners.flatMap((i) => {
      const charge = settleAsk(asks[i] as (typeof asks)[0], admitted(answers[i] as (typeof answers)[0]), {
        amount: 103n,
      });
      return stores.map((s) => s.settle(charge));
    }),
  );
  const after = await first.inspect(tag);
  assert.ok(after);
  assert.deepEqual([after.account.balance, after.account.held, after.inFlight], [0n, 0n, 0]);
  assertIdentities(after);
}

test("of 200 requests at once on money for three, three are admitted: embedded", async () => {
  const bench = await embeddedBench();
  try {
    for (let round = 0; round < 5; round++) await race([bench.store], round);
  } finally {
    await bench.close();
  }
});

test("of 200 requests at once on money for three, three are admitted: Redis, four replicas", async () => {
  const redis = await startRedis();
  const stores = await Promise.all([1, 2, 3, 4].map(() => openUrl(redis)));
  try {
    for (let round = 0; round < 20; round++) await race(stores, round);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
    await redis.stop();
  }
});
