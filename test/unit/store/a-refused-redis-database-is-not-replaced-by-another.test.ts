/** A server that refuses the database in the address is not used at all, and the log says what is wrong with the address. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { type TestContext } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { newAccountTag } from "../../../src/values/key.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { StoreSettings } from "../../../src/values/settings.ts";
import { startRedis } from "../../rig/redis.ts";

/** Short, since the test waits for connections that must be refused. */
const BRIEF = { commandTimeoutMs: 500, stepTimeoutMs: 1_000 } as const;
const ANY_AUTHORITY = { ca: undefined, identity: undefined, serverName: undefined };
const ACCOUNT = { tag: newAccountTag(randomBytes), name: "acme", plan: "free" };

async function opened(t: TestContext, settings: StoreSettings) {
  const reasons: string[] = [];
  const store = await openStore(settings, { ...BRIEF, onConnectionFailed: (reason) => reasons.push(reason) });
  t.after(() => store.close());
  return { store, reasons };
}

test("a user without the right to SELECT writes nothing into database 0, and works once it has the right", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command("ACL", "SETUSER", "default", "-select");
  const { store, reasons } = await opened(t, { kind: "redis", url: new Secret(`${redis.url}/1`) });
  await assert.rejects(store.check(), StoreError);
  await assert.rejects(store.createAccount(ACCOUNT), StoreError);
  assert.match(reasons.at(-1) ?? "", /NOPERM.*select/);
  assert.match(await redis.command("DBSIZE"), /:0/);
  await redis.command("ACL", "SETUSER", "default", "+select");
  for (const sinceMs = performance.now(); ; ) {
    assert.ok(performance.now() - sinceMs < 30_000, reasons.join());
    if (
      await store.check().then(
        () => true,
        () => false,
      )
    )
      break;
  }
  await store.createAccount(ACCOUNT);
  const [first, , second] = await redis.commands(["DBSIZE"], ["SELECT", "1"], ["DBSIZE"]);
  assert.match(first ?? "", /:0/);
  assert.doesNotMatch(second ?? "", /:0/);
});

test("an address with a database that the server does not have is refused", async (t) => {
  const redis = await startRedis({ args: ["--databases", "2"] });
  t.after(() => redis.stop());
  const { store, reasons } = await opened(t, { kind: "redis", url: new Secret(`${redis.url}/2`) });
  await assert.rejects(store.check(), StoreError);
  assert.match(reasons.at(-1) ?? "", /DB index is out of range/);
  assert.match(await redis.command("DBSIZE"), /:0/);
});

test("a cluster or TLS address of a server that is neither is reported as such", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const nodes = [{ host: "127.0.0.1", port: redis.port }];
  const nobody = { username: undefined, password: undefined };
  const cluster = await opened(t, { kind: "redis-cluster", nodes, tls: undefined, ...nobody });
  await assert.rejects(cluster.store.check(), StoreError);
  assert.match(cluster.reasons.at(-1) ?? "", /cluster support disabled/);
  const url = new Secret(redis.url.replace("redis:", "rediss:"));
  const tls = await opened(t, { kind: "redis", url, tls: ANY_AUTHORITY });
  await assert.rejects(tls.store.check(), StoreError);
  assert.match(tls.reasons.at(-1) ?? "", /ETIMEDOUT; a server that does not speak TLS never answers/);
});
