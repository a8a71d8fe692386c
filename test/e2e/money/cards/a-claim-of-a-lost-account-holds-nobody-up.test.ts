/**
 * A code was claimed for an account that the store has lost since. Its claim cannot be finished: it goes behind the others,
 * so that a sweep that takes the oldest first finishes theirs.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { connect } from "../../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../../src/store/redis/connection/runner.ts";
import { accountKey } from "../../../../src/store/redis/keys.ts";
import { claim, noteClaim } from "../../../../src/store/redis/redemption.ts";
import { loadScripts } from "../../../../src/store/redis/scripts.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { startRedis } from "../../../rig/redis.ts";
import { makeAccount } from "../../../unit/store/asks.ts";
import { openUrl } from "../../../unit/store/benches.ts";
import { sell } from "./rig.ts";

test("of two half-done redemptions the one whose account is lost waits, and the other is finished", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => undefined);
  t.after(() => connection.close());
  const runner = new Runner(connection, { tryMs: 400, totalMs: 480 });
  const scripts = loadScripts();
  const tags = [await makeAccount(store, "lost", { funds: 0n }), await makeAccount(store, "sound", { funds: 0n })];
  const codes = await sell(store, 2);
  for (const [i, tag] of tags.entries()) {
    const { hash } = codes[i] ?? assert.fail();
    await noteClaim(runner, scripts, hash);
    await claim(runner, scripts, hash, tag);
    // Notes are in the order of their milliseconds.
    await redis.command("DEBUG", "SLEEP", "0.002");
  }
  const [lost, sound] = tags;
  assert.ok(lost && sound);
  await redis.command("DEL", accountKey(lost));

  assert.equal(await store.finishClaims(1), 0, "the oldest claim is that of the lost account");
  assert.equal(await store.finishClaims(1), 1, "the claim of the lost account was moved behind the other");
  assert.deepEqual(
    (await store.listCards(sound))?.cards.map(({ id }) => id),
    [codes[1]?.id],
  );
  assert.equal((await store.getCode(codes[0]?.id ?? ""))?.state, "claimed");
});
