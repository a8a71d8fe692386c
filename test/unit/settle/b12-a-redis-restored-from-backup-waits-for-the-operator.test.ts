/**
 * docs/failure-model.md row B12: Redis starts with an older copy of its data. A gateway that cannot know this learns it from
 * one that does.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../rig/gateway.ts";
import { startRedis } from "../../rig/redis.ts";
import { PATIENT } from "../store/benches.ts";
import {
  admin,
  balanced,
  charged,
  chat,
  confirmStore,
  LOST,
  openAccount,
  passSeconds,
  readiness,
  untilSettled,
} from "./lossy-scene.ts";

const FOLLOWED = "the journal follows this store";
const HOUR_S = 3_600;

for (const [form, args] of [
  ["an RDB file", []],
  ["an append-only file", ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]],
] as const) {
  test(`an older copy of ${form}: nothing is admitted until the operator confirms, then the last day is restored`, async (t) => {
    const redis = await startRedis({ args });
    t.after(() => redis.stop());
    const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
    t.after(() => here.close());
    await here.logged((line) => line.msg === FOLLOWED);
    const key = await openAccount(here.adminUrl, "backed-up");
    const asked = [await chat(here.url, key)];
    await untilSettled(here.adminUrl);
    const restore = args.length > 0 ? redis.keepAof() : await redis.keepRdb();
    await passSeconds(redis, here.url, HOUR_S);
    for (let count = 0; count < 3; count++) asked.push(await chat(here.url, key));
    await admin(here.adminUrl, "POST", "/accounts/backed-up/topups", { usd: "1", id: "later" });
    await untilSettled(here.adminUrl);
    await restore();
    const lost = await here.logged((line) => LOST.test(String(line.msg)));
    assert.deepEqual(lost.losses, [{ part: 0, kind: "older" }]);
    const refused = await chat(here.url, key);
    assert.deepEqual([refused.status, /"store_older"/.test(refused.text)], [503, true]);
    const older = await balanced(here.store, "backed-up");
    assert.deepEqual([charged(older).length, older.payments], [1, ["pay-backed-up"]]);

    // It has never seen this store before and knows nothing of its history.
    const newcomer = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
    t.after(() => newcomer.close());
    const told = await newcomer.logged((line) => LOST.test(String(line.msg)));
    assert.deepEqual(told.losses, [{ part: 0, kind: "told" }]);
    assert.equal((await chat(newcomer.url, key)).status, 503);

    const followed = here.log.filter((line) => line.msg === FOLLOWED).length;
    await confirmStore(here.adminUrl);
    await here.logged(() => here.log.filter((line) => line.msg === FOLLOWED).length > followed);
    await newcomer.logged((line) => line.msg === "the store has its data");
    assert.equal((await readiness(newcomer.adminUrl)).ready, true);
    asked.push(await chat(newcomer.url, key), await chat(here.url, key));
    assert.ok(asked.every(({ status }) => status === 200));
    await untilSettled(here.adminUrl);
    await untilSettled(newcomer.adminUrl);
    const state = await balanced(here.store, "backed-up");
    assert.deepEqual([charged(state).length, state.payments], [asked.length, ["later", "pay-backed-up"]]);
    assert.equal(state.account.balance + state.account.spent, 6_000_000_000n);
  });
}

test("a loss of a few seconds needs no operator: no request is refused, and the journal restores the data", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  await here.logged((line) => line.msg === FOLLOWED);
  const key = await openAccount(here.adminUrl, "short");
  await chat(here.url, key);
  await untilSettled(here.adminUrl);
  const restore = await redis.keepRdb();
  await passSeconds(redis, here.url, 50);
  await chat(here.url, key);
  await untilSettled(here.adminUrl);
  const followed = here.log.filter((line) => line.msg === FOLLOWED).length;
  await restore();
  await here.logged(() => here.log.filter((line) => line.msg === FOLLOWED).length > followed);
  assert.equal(charged(await balanced(here.store, "short")).length, 2);
  assert.equal(here.log.filter((line) => LOST.test(String(line.msg))).length, 0);
  assert.equal((await chat(here.url, key)).status, 200);
});

/** How to break the hash of an account, and how to repair it. */
const BREAKS = {
  "a key of another type": [
    (hash: string) => [
      ["RENAME", hash, "kept-aside"],
      ["SET", hash, "no hash"],
    ],
    (hash: string) => [
      ["DEL", hash],
      ["RENAME", "kept-aside", hash],
    ],
  ],
  "a counter that is not a number": [
    (hash: string) => [["HSET", hash, "nb", "abc"]],
    (hash: string) => [["HDEL", hash, "nb"]],
  ],
} as const;

for (const [what, [broken, mended]] of Object.entries(BREAKS)) {
  test(`an account that is broken in the copy (${what}) does not delay the restoration of the others`, async (t) => {
    const redis = await startRedis();
    t.after(() => redis.stop());
    const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
    t.after(() => here.close());
    await here.logged((line) => line.msg === FOLLOWED);
    const keys = [await openAccount(here.adminUrl, "whole"), await openAccount(here.adminUrl, "broken")];
    for (const key of keys) await chat(here.url, key);
    await untilSettled(here.adminUrl);
    const account = (await here.store.findAccount("broken")) ?? assert.fail("there is no account");
    const restore = await redis.keepRdb();
    await passSeconds(redis, here.url, HOUR_S);
    for (const key of keys) await chat(here.url, key);
    await untilSettled(here.adminUrl);
    await restore();
    await here.logged((line) => LOST.test(String(line.msg)));
    const hash = `{a:${account.tag}}`;
    for (const command of broken(hash)) await redis.command(...command);
    const followed = here.log.filter((line) => line.msg === FOLLOWED).length;
    await confirmStore(here.adminUrl);
    await here.logged(() => here.log.filter((line) => line.msg === FOLLOWED).length > followed);
    assert.equal((await chat(here.url, keys[0] as string)).status, 200);
    await untilSettled(here.adminUrl);
    assert.equal(charged(await balanced(here.store, "whole")).length, 3);
    const page = async () => (await fetch(`${here.adminUrl}/metrics`)).text();
    assert.match(await page(), /^tollgate_unverified_charges [1-9]/m);
    for (const command of mended(hash)) await redis.command(...command);
    await here.logged(
      ({ event }) => event === "charge_restored" && here.log.filter((line) => line.event === event).length === 2,
    );
    const given = here.log.filter(({ event }) => event === "charge_restored");
    const asked = here.log.filter(({ msg }) => msg === "request").map(({ request }) => request);
    assert.ok(
      given.every(({ request }) => asked.includes(request)),
      "each restored charge is logged with the id of its request",
    );
    assert.equal(charged(await balanced(here.store, "broken")).length, 2);
  });
}
