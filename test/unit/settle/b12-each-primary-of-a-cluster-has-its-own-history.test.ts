/**
 * docs/failure-model.md row B12 with a cluster: one primary of three starts empty, which is noticed although the others have
 * everything.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { slotOf, tagsOverSlots } from "../../../src/store/redis/connection/slots.ts";
import { startGatewayHere } from "../../rig/gateway.ts";
import { startRedisCluster } from "../../rig/redis.ts";
import { PATIENT } from "../store/benches.ts";
import { balanced, charged, chat, confirmStore, LOST, openAccount, untilSettled } from "./lossy-scene.ts";

const FOLLOWED = "the journal follows this store";

test("an emptied primary stops admission, and the operator's confirmation restores everything", async (t) => {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  const nodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
  const here = await startGatewayHere({ store: `redis-cluster://${nodes}`, storeTimes: PATIENT });
  t.after(() => here.close());
  await here.logged((line) => line.msg === FOLLOWED);
  const names = ["one", "two", "three", "four", "five", "six"];
  const keys = await Promise.all(names.map((name) => openAccount(here.adminUrl, name)));
  for (const key of keys) assert.equal((await chat(here.url, key)).status, 200);
  await untilSettled(here.adminUrl);
  assert.match((await cluster.servers[1]?.command("FLUSHALL")) ?? "", /^\+OK/);
  const lost = await here.logged((line) => LOST.test(String(line.msg)));
  const parts = (lost.losses as { part: number; kind: string }[]).filter(({ kind }) => kind === "empty");
  assert.ok(parts.length >= 10 && parts.length <= 12, `${parts.length} of 32 parts`);
  for (const key of keys) assert.equal((await chat(here.url, key)).status, 503);
  const followed = here.log.filter((line) => line.msg === FOLLOWED).length;
  await confirmStore(here.adminUrl);
  await here.logged(() => here.log.filter((line) => line.msg === FOLLOWED).length > followed);
  for (const [index, name] of names.entries()) {
    const key = keys[index] as string;
    assert.equal((await chat(here.url, key)).status, 200);
    await untilSettled(here.adminUrl);
    assert.equal(charged(await balanced(here.store, name)).length, 2);
  }
});

test("slots match those of the servers, and each range of them has a tag", async (t) => {
  const cluster = await startRedisCluster();
  t.after(() => cluster.stop());
  for (const key of ["123456789", "{a:TAG0000000}:h", "{}x", "a{b}c{d}", "epoch:{17}"]) {
    assert.equal(await cluster.servers[0]?.command("CLUSTER", "KEYSLOT", key), `:${slotOf(key)}\r\n`, key);
  }
  const stretches = tagsOverSlots(32).map((tag) => Math.floor(slotOf(`epoch:{${tag}}`) / 512));
  assert.deepEqual(
    stretches,
    Array.from({ length: 32 }, (_, part) => part),
  );
});
