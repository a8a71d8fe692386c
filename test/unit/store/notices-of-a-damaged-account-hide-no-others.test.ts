/** An account whose record cannot be read is left out of the list of waiting notices; the others' are listed all the same. */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { accountKey } from "../../../src/store/redis/keys.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { startRedis } from "../../rig/redis.ts";
import { makeAccount } from "./asks.ts";
import { openUrl } from "./benches.ts";

test("of three accounts one is damaged, and the notices of the other two are listed", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const tags: AccountTag[] = [];
  for (const name of ["a", "b", "c"]) {
    const tag = await makeAccount(store, name);
    await store.addNotice(tag, { kind: "balance_low", ref: name, data: {} });
    tags.push(tag);
  }
  const listed = async () => (await store.pageNotices(undefined, 10)).items.map(({ tag }) => tag);
  assert.deepEqual(await listed(), tags);

  const damage = async (tag: AccountTag) => {
    await redis.command("DEL", accountKey(tag));
    await redis.command("SET", accountKey(tag), "no hash");
  };
  const [first, second, third] = tags;
  assert.ok(first && second && third);
  await damage(second);
  assert.deepEqual(await listed(), [first, third]);
  await damage(first);
  await damage(third);
  await assert.rejects(listed(), StoreError, "an error is not reported as an empty list");
});
