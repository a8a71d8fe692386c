/** However many reads an account's sessions request at once, the process reads its ledger for one of them at a time. */
import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { READS_AT_ONCE_MAX } from "../../../../src/console/owner/read-turns.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { startOwners } from "../sign-in/owners.ts";
import { holding } from "../test-store.ts";

const BEYOND = 8;

test("reads of one account run one after the other at each route, and delay neither its other routes nor other accounts", async (t) => {
  const held = Promise.withResolvers<void>();
  let underWay = 0;
  let most = 0;
  let holds = "";
  const hold = async (tag: unknown) => {
    if (tag !== holds) return;
    most = Math.max(most, ++underWay);
    await held.promise;
    underWay--;
  };
  const owners = await startOwners(t, {}, (store) => holding(store, "readLedger", hold));
  const enter = async (name: string) => {
    const tag = await owners.account(name);
    await owners.store.credit(tag, { id: `of ${name}`, amount: nanoUsd(1n), kind: "topup", note: "" });
    const browser = owners.browser();
    await browser.post("/sign-in/link", { token: await owners.link(tag) });
    return { tag, browser };
  };
  const [alice, bob] = [await enter("alice"), await enter("bob")];
  holds = alice.tag;
  const refused: (string | undefined)[] = [];
  const asked = Array.from({ length: READS_AT_ONCE_MAX + BEYOND }, async () => {
    const answer = await alice.browser.get("/lines");
    if (answer.status !== 200) refused.push(`${answer.status} ${answer.code} ${answer.headers["retry-after"]}`);
    return answer.status;
  });
  t.after(() => held.resolve());
  while (most <= 1 && (refused.length < BEYOND || most === 0)) await setImmediate();
  assert.equal(most, 1);
  assert.deepEqual(new Set(refused), new Set(["429 too_many_requests 1"]));
  assert.equal((await bob.browser.get("/lines")).status, 200);
  assert.equal(await alice.browser.account(), "alice");
  held.resolve();
  const answered = (await Promise.all(asked)).filter((status) => status === 200);
  assert.deepEqual([answered.length, most], [READS_AT_ONCE_MAX, 1]);
  assert.equal((await alice.browser.get("/lines")).status, 200);
});
