/**
 * docs/failure-model.md row B6: the promoted replica lacks the last seconds. What a replica had confirmed to an operator is
 * there, what it had not confirmed was reported, and the journal restores the rest. A payment id counts once before and after
 * the failover (row 39).
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../rig/gateway.ts";
import { startRedis, startSentinel, type TestRedis } from "../../rig/redis.ts";
import { admin, balanced, charged, chat, LOST, openAccount, until, untilSettled } from "./lossy-scene.ts";

const FOLLOWED = "the journal follows this store";

interface Scene {
  readonly primary: TestRedis;
  readonly replica: TestRedis;
  readonly sentinel: TestRedis;
  readonly here: GatewayHere;
}

async function replicated(t: TestContext): Promise<Scene> {
  const primary = await startRedis();
  t.after(() => primary.stop());
  const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${primary.port}`] });
  t.after(() => replica.stop());
  // The first synchronization takes some seconds.
  await until("the primary has no replica", async () =>
    (await primary.command("INFO", "replication")).includes("state=online"),
  );
  // With its default of 30 s until it considers a server down, Sentinel starts no failover by itself here. With a lower value
  // it might take a busy machine for a dead server, before the scene or after it.
  const sentinel = await startSentinel("tollgate", primary);
  t.after(() => sentinel.stop());
  await until("Sentinel has not heard of the replica from the primary", async () =>
    (await sentinel.command("SENTINEL", "REPLICAS", "tollgate")).includes(`${replica.port}`),
  );
  const here = await startGatewayHere({ store: `redis-sentinel://127.0.0.1:${sentinel.port}/tollgate` });
  t.after(() => here.close());
  await followed(here, 1);
  return { primary, replica, sentinel, here };
}

const timesFollowed = ({ log }: GatewayHere): number => log.filter(({ msg }) => msg === FOLLOWED).length;

/** Resolves when the gateway has restored the store's servers this many times; on a timeout, says what was logged last. */
async function followed(here: GatewayHere, times: number): Promise<void> {
  await until(
    () =>
      `the journal does not follow the store:\n${here.log
        .slice(-10)
        .map((line) => JSON.stringify(line))
        .join("\n")}`,
    async () => timesFollowed(here) >= times,
  );
}

/** Sends a payment as clients should: again with the same id while the store is unreachable or no replica confirms it. */
async function paid(here: GatewayHere, payment: object): Promise<number> {
  let status = 0;
  let said = "";
  await until(
    () => `the payment is not taken: ${status} ${said}`,
    async () => {
      const answer = await admin(here.adminUrl, "POST", "/accounts/served/topups", payment);
      status = answer.status;
      said = JSON.stringify(answer.json);
      return status !== 503;
    },
  );
  return status;
}

test("row B6, 39: nothing is missing or doubled, and what a replica confirmed survives", async (t) => {
  const { primary, replica, sentinel, here } = await replicated(t);
  const key = await openAccount(here.adminUrl, "served");
  const keys = (await admin(here.adminUrl, "GET", "/accounts/served/keys")).json.items as { id: string }[];
  const group = `/keys/${keys[0]?.id}/group`;
  const payment = { usd: "1", id: "once" };
  const asked = [await chat(here.url, key)];
  let moved = 503;
  while (moved === 503) moved = (await admin(here.adminUrl, "PUT", group, { group: "double-money" })).status;
  assert.equal(moved, 200);
  assert.ok((await paid(here, payment)) < 300);

  // From here on the replica receives nothing more.
  assert.match(await replica.command("SAVE"), /^\+OK/);
  replica.freeze();
  for (let count = 0; count < 5; count++) asked.push(await chat(here.url, key));
  await untilSettled(here.adminUrl);
  const late = { usd: "2", id: "late" };
  const unsure = await admin(here.adminUrl, "POST", "/accounts/served/topups", late);
  const error = unsure.json.error as { code: string; message: string; remedy: string };
  assert.deepEqual([unsure.status, error.code], [503, "not_confirmed"]);
  assert.match(error.message, /made on the store's primary, but no replica confirmed it/);
  assert.match(error.remedy, /same id/);
  const before = await balanced(here.store, "served");
  assert.equal(charged(before).length, 6);

  const walks = timesFollowed(here);
  await primary.stop();
  await replica.crash();
  // Refused until Sentinel has seen the replica again.
  await until("Sentinel finds no replica to promote", async () =>
    (await sentinel.command("SENTINEL", "FAILOVER", "tollgate")).startsWith("+OK"),
  );
  await followed(here, walks + 1);

  const after = await balanced(here.store, "served");
  assert.deepEqual(after.payments, ["late", "once", "pay-served"]);
  assert.equal(after.keys[0]?.group, "double-money");
  assert.deepEqual(charged(after), charged(before));
  assert.equal(here.log.filter((line) => line.msg === "the store had lost a charge and has it again").length, 5);
  assert.equal(here.log.filter((line) => LOST.test(String(line.msg))).length, 0);
  assert.ok(asked.every(({ status }) => status === 200));

  // Row 39: both payments are sent again, the late one fifty times at once.
  const again = await Promise.all([payment, ...Array.from({ length: 50 }, () => late)].map((one) => paid(here, one)));
  assert.deepEqual([...new Set(again)], [200]);
  const state = await balanced(here.store, "served");
  assert.deepEqual(state.payments, ["late", "once", "pay-served"]);
  assert.equal(state.account.balance + state.account.spent, 8_000_000_000n);
  assert.equal(state.account.balance, before.account.balance);
  assert.equal((await chat(here.url, key)).status, 200);
});

test("invariant 35: a claim that no replica has is reported and not credited, and the next try gives the card once", async (t) => {
  const { primary, replica, here } = await replicated(t);
  await openAccount(here.adminUrl, "holder");
  let made = await admin(here.adminUrl, "POST", "/codes", { card: "day", count: 1 });
  while (made.status === 503) made = await admin(here.adminUrl, "POST", "/codes", { card: "day", count: 1 });
  const [{ code }] = made.json.items as [{ code: string }];
  replica.freeze();
  const unsure = await admin(here.adminUrl, "POST", "/accounts/holder/redemptions", { code });
  assert.deepEqual([unsure.status, (unsure.json.error as { code: string }).code], [503, "not_confirmed"]);
  assert.deepEqual((await balanced(here.store, "holder")).entitlements, []);
  replica.thaw();
  await until("the replica has not caught up", async () =>
    /state=online.*lag=[01]\b/.test(await primary.command("INFO", "replication")),
  );
  const done = await admin(here.adminUrl, "POST", "/accounts/holder/redemptions", { code });
  assert.ok(done.status < 300, JSON.stringify(done.json));
  assert.equal((await balanced(here.store, "holder")).entitlements.length, 1);
});
