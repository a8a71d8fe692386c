/** docs/failure-model.md row B12: the key of the store's history holds something else, at the start or later. */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { tagsOverSlots } from "../../../src/store/redis/connection/slots.ts";
import { epochKey } from "../../../src/store/redis/keys.ts";
import { startGatewayHere } from "../../rig/gateway.ts";
import { startRedis } from "../../rig/redis.ts";
import { admin, chat, openAccount, readiness, until } from "./lossy-scene.ts";

const KEY = epochKey(tagsOverSlots(32)[0] as string);
const UNREADABLE = (line: { readonly event?: unknown }) => line.event === "store_history_unreadable";

test("at the start: nothing is admitted, readiness and log give the reason, and admission resumes once the key is removed", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command("SET", KEY, "of another program");
  const here = await startGatewayHere({ store: redis.url });
  t.after(() => here.close());
  const line = await here.logged(UNREADABLE);
  assert.equal(line.level, "error");
  assert.match(String(line.reason), /WRONGTYPE/);
  // The reason is shown after each check that Redis answers. On a busy machine a check may fail for want of an answer.
  await until("readiness does not give the reason", async () => {
    const { ready, reasons } = await readiness(here.adminUrl);
    return !ready && /^the store's history cannot be read: .*WRONGTYPE/.test(reasons.join());
  });
  await until("`GET /store` does not give the reason", async () => {
    const { json } = await admin(here.adminUrl, "GET", "/store");
    return /^the store's history cannot be read/.test(String(json.problem));
  });
  await redis.command("DEL", KEY);
  await here.logged((line) => line.msg === "the journal follows this store");
  assert.deepEqual(await readiness(here.adminUrl), { ready: true, reasons: [], notes: [] });
});

test("at the start: an outage in between does not make the gateway ready", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command("SET", KEY, "of another program");
  const here = await startGatewayHere({ store: redis.url });
  t.after(() => here.close());
  const isUnready = async () => {
    const { ready, reasons } = await readiness(here.adminUrl);
    return !ready && reasons.join().includes("the store's history cannot be read");
  };
  await until("readiness does not give the reason", isUnready);
  redis.freeze();
  const away = here.logged((line) => line.event === "store_away");
  while (!(await Promise.race([away.then(() => true), nextTurn(false)]))) assert.ok(await isUnready(), "it is ready");
  assert.ok(await isUnready(), "it is ready during the outage");
  const back = here.logged((line) => line.event === "store_back");
  redis.thaw();
  await back;
  assert.ok(await isUnready(), "it is ready after the outage");
});

test("later: requests continue, and the log says that a loss would go unnoticed", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url });
  t.after(() => here.close());
  const key = await openAccount(here.adminUrl, "going-on");
  await here.logged((line) => line.msg === "the journal follows this store");
  await redis.command("SET", KEY, "of another program");
  await here.logged(UNREADABLE);
  assert.equal((await chat(here.url, key, false)).status, 200);
  assert.deepEqual(await readiness(here.adminUrl), { ready: true, reasons: [], notes: [] });
});
