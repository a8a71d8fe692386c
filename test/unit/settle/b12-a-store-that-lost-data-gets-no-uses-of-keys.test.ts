/**
 * docs/failure-model.md row B12: a store whose history is not the gateway's own is not written to. This includes the last
 * uses of keys, which the gateway gathers for a minute and writes when it ends.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../rig/gateway.ts";
import { startRedis } from "../../rig/redis.ts";
import { PATIENT } from "../store/benches.ts";
import { chat, LOST, openAccount, untilSettled } from "./lossy-scene.ts";

test("the last uses of keys are not written to a store that waits for its operator", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  const key = await openAccount(here.adminUrl, "used");
  assert.equal((await chat(here.url, key)).status, 200);
  await untilSettled(here.adminUrl);
  const { tag } = (await here.store.findAccount("used")) ?? assert.fail("there is no account");
  const [history = ""] = /epoch:\{[^}]*\}/.exec(await redis.command("KEYS", "epoch:*")) ?? [];
  assert.equal(await redis.command("DEL", history), ":1\r\n");
  await here.logged((line) => LOST.test(String(line.msg)));
  const record = await redis.command("HGETALL", `{a:${tag}}`);
  await here.gateway.close();
  assert.equal(await redis.command("HGETALL", `{a:${tag}}`), record);
  assert.deepEqual(
    here.log.filter(({ msg }) => msg === "the last use of an account's keys was not noted"),
    [],
  );
});
