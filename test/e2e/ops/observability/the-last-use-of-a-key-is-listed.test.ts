// A key that was used is listed with its client program and address. The gateway writes this to the store before it
// ends.
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { openUrl, PATIENT } from "../../../unit/store/benches.ts";
import { ask } from "../../protocol/whole/asking.ts";

test("the last use of a key is in the store when its gateway has ended", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  const used = await here.account();
  const idle = await here.account();
  const headers = { "user-agent": "claude-cli/2.1.330 (external, cli)" };
  const beforeMs = Date.now();
  assert.equal((await ask(here, "chat", used.key, {}, { headers })).status, 200);
  assert.equal((await ask(here, "chat", idle.key, { model: "none" }, { headers })).status, 404);
  await here.gateway.close();
  const store = await openUrl(redis);
  t.after(() => store.close());
  const [key] = await store.listKeys(used.tag);
  assert.deepEqual([key?.lastUse?.from, key?.lastUse?.by], ["127.0.0.1", "claude-cli/2.1.330"]);
  const atMs = key?.lastUse?.atMs ?? 0;
  assert.ok(atMs >= beforeMs && atMs <= Date.now());
  assert.equal((await store.listKeys(idle.tag))[0]?.lastUse, undefined, "a request that was not admitted is not a use");
});
