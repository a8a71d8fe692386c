/** docs/failure-model.md invariant 35: what the operator reads fits a Redis that has no replicas. */
import assert from "node:assert/strict";
import test from "node:test";
import { storeRefusal } from "../../../src/console/refusal.ts";
import { UnconfirmedError } from "../../../src/store/contract.ts";
import { startRedis } from "../../rig/redis.ts";
import { tagOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

test("a write whose confirmation a Redis without replicas does not answer is not blamed on replicas", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const operators = store.confirming();
  await operators.createAccount({ tag: tagOf("First"), name: "first", plan: "free" });

  // The question for replicas is refused from here on; the write itself is not.
  assert.match(await redis.command("ACL", "SETUSER", "default", "-info"), /^\+OK/);
  const error = await operators.createAccount({ tag: tagOf("Second"), name: "second", plan: "free" }).then(
    () => assert.fail("it was confirmed"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof UnconfirmedError, String(error));
  const { status, code, message, remedy } = storeRefusal(error, undefined);
  assert.deepEqual([status, code], [503, "not_confirmed"]);
  assert.match(message, /^The change was made, but then the store's server did not answer/);
  assert.doesNotMatch(`${message} ${remedy} ${error.message}`, /replica|primary/);
  assert.equal((await store.findAccount("second"))?.name, "second");
});
