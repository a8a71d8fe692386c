/** A Redis user that may not even use INFO: the error names all rights that are missing, so that one change is enough. */
import assert from "node:assert/strict";
import test from "node:test";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";

test("the error names INFO and the other missing commands", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command("ACL", "SETUSER", "poor", "on", ">word", "~*", "&*", "+@all", "-info", "-zrem");
  const url = new URL(redis.url);
  url.username = "poor";
  url.password = "word";
  const store = await openStore({ kind: "redis", url: new Secret(url.href) });
  t.after(() => store.close());
  await assert.rejects(store.check(), /the user of Redis may not (?=.*INFO)(?=.*ZREM)/);
});
