/**
 * docs/failure-model.md row B11: a gateway does not start on a Redis that evicts keys; out of memory becomes 503, and
 * nothing is left half done.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { settledMetrics, startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { assertRefused, scene, settledState } from "./rig.ts";

test("a gateway refuses to start on a Redis that evicts keys, and says why", async () => {
  const redis = await startRedis({ args: ["--maxmemory-policy", "allkeys-lru"] });
  try {
    await assert.rejects(startGatewayHere({ store: redis.url }), /maxmemory-policy is allkeys-lru.*noeviction/);
  } finally {
    await redis.stop();
  }
});

test("a gateway starts while Redis is unreachable, is not ready, and serves when Redis is reachable", async (t) => {
  const redis = await startRedis();
  redis.freeze();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url });
  t.after(() => here.close());
  const ready = async () => (await fetch(`${here.adminUrl}/readyz`)).status;
  const up = async () => /^tollgate_store_up (.*)$/m.exec(await settledMetrics(here.adminUrl))?.[1];
  assert.deepEqual([await ready(), await up()], [503, "0"], "nothing is admitted before the store has answered once");
  redis.thaw();
  await here.logged(({ msg }) => msg === "the store answers again");
  assert.deepEqual([await ready(), await up()], [200, "1"]);
  assert.ok(await here.account());
});

test("if Redis is out of memory, new requests get 503, running ones end well, and all charges settle when there is memory", async (t) => {
  const s = await scene(t);
  assert.equal(await s.status(), "200");
  const before = await settledState(s, 1);
  s.here.simulator.hold();
  const running = s.status();
  await s.here.simulator.waitFor(2);
  const held = await s.here.store.inspect(s.account.tag);
  await s.redis.command("CONFIG", "SET", "maxmemory", "1");
  s.here.simulator.release();
  assert.equal(await running, "200");
  await assertRefused(s, 12);
  assert.deepEqual(await s.here.store.inspect(s.account.tag), held, "no script stops half-way");
  await s.redis.command("CONFIG", "SET", "maxmemory", "0");
  await s.closed();
  assert.equal(await s.status(), "200");
  const after = await settledState(s, 3);
  assert.ok(after.account.balance < before.account.balance);
});
