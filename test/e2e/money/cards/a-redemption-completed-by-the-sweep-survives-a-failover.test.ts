/** A redemption completed by the sweep is in the journal: a Redis that lost it, and the claim's note, gets it again. */
import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "../../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../../src/store/redis/connection/runner.ts";
import { claim, noteClaim } from "../../../../src/store/redis/redemption.ts";
import { loadScripts } from "../../../../src/store/redis/scripts.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { makeAccount } from "../../../unit/store/asks.ts";
import { openUrl, PATIENT } from "../../../unit/store/benches.ts";
import { sell } from "./rig.ts";

const FOLLOWED = "the journal follows this store";

test("what the sweep has credited is restored with the account that had claimed it", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const tag = await makeAccount(store, "swept", { group: "cards", funds: 0n });
  const [code] = await sell(store, 1);
  assert.ok(code);
  // The store gets its mark before the copy is taken, so that the loss is one of seconds.
  await (await startGatewayHere({ store: redis.url, storeTimes: PATIENT })).close();
  const restore = await redis.keepRdb();
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => undefined);
  t.after(() => connection.close());
  const runner = new Runner(connection, { tryMs: 400, totalMs: 480 });
  await noteClaim(runner, loadScripts(), code.hash);
  await claim(runner, loadScripts(), code.hash, tag);

  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  await here.logged((line) => line.codes === 1);
  await here.logged((line) => line.msg === FOLLOWED);
  const [before] = (await here.store.listCards(tag))?.cards ?? [];
  const followed = here.log.filter((line) => line.msg === FOLLOWED).length;
  await restore();
  await here.logged(() => here.log.filter((line) => line.msg === FOLLOWED).length > followed);
  assert.equal((await here.store.getCode(code.id))?.state, "redeemed");
  assert.deepEqual((await here.store.listCards(tag))?.cards, [before]);
});
