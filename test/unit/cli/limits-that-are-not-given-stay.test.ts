/** `account limit` changes the limits that are given. The others stay, unless `--clear` removes them. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGateway } from "./captured-run.ts";

test("a new daily limit keeps the monthly one, none removes one, and --clear all that are not given", async (t) => {
  const { tollgate } = await startGateway(t);
  await tollgate("account", "create", "alice");
  const limit = async (...options: string[]) => {
    const ran = await tollgate("--json", "account", "limit", "alice", ...options);
    assert.deepEqual([ran.status, ran.err], [0, ""], options.join(" "));
    const { day, month } = JSON.parse(ran.out).limits.budgets_usd;
    return [day, month].map((usd) => (usd === null || usd === undefined ? undefined : Number(usd)));
  };
  assert.deepEqual(await limit("--month", "10"), [undefined, 10]);
  assert.deepEqual(await limit("--day", "1"), [1, 10]);
  assert.deepEqual(await limit(), [1, 10]);
  assert.deepEqual(await limit("--day", "2"), [2, 10]);
  assert.deepEqual(await limit("--month", "none"), [2, undefined]);
  assert.deepEqual(await limit("--clear", "--month", "5"), [undefined, 5]);
  assert.deepEqual(await limit("--clear"), [undefined, undefined]);
});
