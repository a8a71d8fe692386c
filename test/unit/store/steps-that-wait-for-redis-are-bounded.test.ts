/** A Redis that is slow does not fill the memory: ten thousand steps wait for it, and further ones are refused at once. */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { connect } from "../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../src/store/redis/connection/runner.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";

const WAITING_MAX = 10_000;

test("the step after ten thousand is refused unsent, and the next is taken when one has its reply", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => undefined);
  t.after(() => connection.close());
  const runner = new Runner(connection, { tryMs: 120_000, totalMs: 120_000 });
  const replies = Promise.withResolvers<void>();
  const first = Promise.withResolvers<void>();
  const waiting = Array.from({ length: WAITING_MAX }, (_, i) => runner.step(() => (i === 0 ? first : replies).promise));
  const ask = () => runner.step((to) => to.hget("nothing", "field"));
  await assert.rejects(ask(), (error) => {
    assert.ok(error instanceof StoreError);
    assert.deepEqual([error.kind, error.outcome], ["unavailable", "unsent"]);
    return true;
  });
  first.resolve();
  await waiting[0];
  assert.equal(await ask(), null);
  replies.resolve();
  await Promise.all(waiting);
});
