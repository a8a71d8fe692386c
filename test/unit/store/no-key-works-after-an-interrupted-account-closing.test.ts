// docs/failure-model.md row B13: on Redis one script closes an account and another one revokes each of its keys. If it stops
// between them, no key works any more, even if its own record still says so; the same call again finishes it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import { Secret } from "../../../src/values/secret.ts";
import { admitAsk, causeOf, hashOf, makeAccount, ridOf } from "./asks.ts";
import { PATIENT } from "./benches.ts";
import { openTheatre, TAG } from "./stops.ts";

test("no key of an account works after a close that stopped before its keys were revoked", async (t) => {
  const open = (url: string) => openStore({ kind: "redis", url: new Secret(url) }, PATIENT);
  const theatre = await openTheatre(Object.values(loadScripts()), open);
  t.after(() => theatre.close());
  const { store } = theatre.direct;
  await makeAccount(store, "Stopped");
  await store.createKey(TAG, { id: "key_asleep", hash: hashOf("asleep"), group: "big" });
  await store.changeKey(TAG, "key_asleep", { status: "suspended" });
  const admit = async (key: string) =>
    causeOf(await store.admit(admitAsk({ tag: TAG, requestId: ridOf(1), keyHash: hashOf(key) })));
  theatre.stopper.stopAt("key-change", 1, 0);
  await assert.rejects(theatre.proxied.store.closeAccount(TAG));
  assert.ok(theatre.stopper.goOn(), "it was stopped at the first key");
  assert.equal((await store.getAccount(TAG))?.status, "closed");
  assert.deepEqual((await store.listKeys(TAG)).map(({ status }) => status).sort(), ["normal", "suspended"]);
  for (const key of ["key", "asleep"]) {
    assert.equal(await admit(key), "revoked_key", key);
    assert.equal((await store.readKey(TAG, hashOf(key)))?.key.status, "revoked", key);
  }
  assert.equal((await store.closeAccount(TAG))?.status, "closed");
  assert.deepEqual(
    (await store.listKeys(TAG)).map(({ status }) => status),
    ["revoked", "revoked"],
  );
});
