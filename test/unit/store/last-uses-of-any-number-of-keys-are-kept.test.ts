/** An account may have more keys in use than one script records: the last use of each is kept. */
import assert from "node:assert/strict";
import test from "node:test";
import { startRedis } from "../../rig/redis.ts";
import { hashOf, makeAccount } from "./asks.ts";
import { openUrl } from "./benches.ts";

const KEYS = 1_050;

test("the last uses of a thousand keys, noted at once, are all listed", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const tag = await makeAccount(store, "Used");
  const ids = Array.from({ length: KEYS }, (_, i) => `key_${String(i).padStart(5, "0")}`);
  for (let at = 0; at < KEYS; at += 100) {
    await Promise.all(
      ids.slice(at, at + 100).map((id) => store.createKey(tag, { id, hash: hashOf(id), group: "big" })),
    );
  }
  await store.noteKeyUses(
    tag,
    ids.map((keyId, i) => ({ keyId, atMs: 1_000 + i, from: "192.0.2.1", by: "curl" })),
  );
  const used = (await store.listKeys(tag)).filter(({ id }) => ids.includes(id));
  const instants = new Map(used.map(({ id, lastUse }) => [id, lastUse?.atMs]));
  assert.deepEqual(
    ids.filter((id, i) => instants.get(id) !== 1_000 + i),
    [],
  );
});
