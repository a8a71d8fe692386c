/**
 * docs/failure-model.md rows B1 and B6, invariant 33: a real Redis that restarts without its last acknowledged writes has a new
 * run id, and the journal restores them at once: charges, payments, accounts, keys, plans, codes, cards.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import type { AccountState } from "../../../src/store/records.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import { type GatewayHere, settledMetrics, startGatewayHere } from "../../rig/gateway.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { PATIENT } from "../store/benches.ts";

const RESTORED = "the store had lost a charge and has it again";
const NEW_SERVER = "another server answers for the store; what it lacks is sent";
const FOLLOWED = "the journal follows this store";
const NOT_TAKEN = "the store refuses a replayed write";

interface Scene {
  readonly redis: TestRedis;
  readonly here: GatewayHere;
  /** Sends one request to the admin API. @returns its answer, which must be a success. */
  admin(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  /** Saves the data that Redis still has after `loseTheRest`. */
  save(): Promise<void>;
  /** Resolves when the journal has restored what the crash lost. */
  loseTheRest(): Promise<void>;
  state(name: string): Promise<AccountState>;
}

async function scene(t: TestContext): Promise<Scene> {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const here = await startGatewayHere({ store: redis.url, storeTimes: PATIENT });
  t.after(() => here.close());
  await here.logged((line) => line.msg === FOLLOWED);
  const followed = () => here.log.filter((line) => line.msg === FOLLOWED).length;
  return {
    redis,
    here,
    async admin(method, path, body) {
      const ask = () =>
        fetch(`${here.adminUrl}/admin/v1${path}`, {
          method,
          headers: { authorization: `Bearer ${here.gateway.adminToken}`, "content-type": "application/json" },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
      let answer = await ask();
      let text = await answer.text();
      // As operators should: sends the write again while it is not confirmed in time.
      while (text.includes('"not_confirmed"')) {
        answer = await ask();
        text = await answer.text();
      }
      assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
      return JSON.parse(text) as Record<string, unknown>;
    },
    async save() {
      // A client has its answer when the charge is in the journal; the store may get the charge later.
      await settledMetrics(here.adminUrl);
      assert.match(await redis.command("SAVE"), /^\+OK/);
    },
    async loseTheRest() {
      const before = followed();
      await redis.crash();
      await here.logged(() => followed() > before);
    },
    async state(name) {
      const account = await here.store.findAccount(name);
      assert.ok(account, `${name} is there`);
      const audit = await auditToEnd(auditAccount(here.store, account));
      assert.deepEqual(audit.findings, []);
      assert.equal(audit.outcome, "balanced");
      return (await here.store.inspect(account.tag)) as AccountState;
    },
  };
}

async function chat(here: GatewayHere, key: string): Promise<string> {
  const answer = await fetch(`${here.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", messages: [{ role: "user", content: "hello" }], max_tokens: 500 }),
  });
  await answer.text();
  assert.equal(answer.status, 200);
  const requestId = answer.headers.get("x-request-id") ?? "";
  await here.requestEnd(requestId);
  return requestId;
}

const usageLines = (state: AccountState) => state.ledger.filter((line) => line.kind === "usage");

test("acknowledged charges that a crash lost are in the ledger again, once and immediately", async (t) => {
  const { here, save, loseTheRest, state } = await scene(t);
  const account = await here.account();
  await chat(here, account.key);
  await save();
  for (let count = 0; count < 5; count++) await chat(here, account.key);
  const before = await state(account.name);
  assert.equal(usageLines(before).length, 6);
  await loseTheRest();
  const after = await state(account.name);
  assert.deepEqual(
    usageLines(after)
      .map((line) => line.reference)
      .sort(),
    usageLines(before)
      .map((line) => line.reference)
      .sort(),
  );
  assert.deepEqual([after.account.balance, after.account.spent], [before.account.balance, before.account.spent]);
  assert.deepEqual(after.holds, []);
  assert.equal(here.log.filter((line) => line.msg === RESTORED).length, 5);
  assert.equal(here.log.filter((line) => line.msg === NEW_SERVER).length, 1);
  assert.match((await here.gateway.metrics.page()).body, /tollgate_restored_charges_total 5\n/);
});

test("an account that a crash lost is restored with payments, keys and charges, in the necessary order", async (t) => {
  const { here, admin, save, loseTheRest, state } = await scene(t);
  await save();
  await admin("POST", "/accounts", { name: "lost" });
  await admin("POST", "/accounts/lost/topups", { usd: "3", id: "pay-1" });
  await admin("POST", "/accounts/lost/adjustments", { usd: "-1", id: "fix-1", note: "a note" });
  const key = await admin("POST", "/accounts/lost/keys", { group: "money" });
  await chat(here, key.key as string);
  const before = await state("lost");
  await loseTheRest();
  const after = await state("lost");
  const money = ({ account: { balance, spent, topped } }: AccountState) => [balance, spent, topped];
  assert.deepEqual(money(after), money(before));
  assert.deepEqual(after.payments, ["fix-1", "pay-1"]);
  assert.deepEqual(
    after.ledger.map((line) => [line.kind, line.reference, line.memo]),
    before.ledger.map((line) => [line.kind, line.reference, line.memo]),
  );
  assert.equal(here.log.filter((line) => line.msg === NOT_TAKEN).length, 0);
  await chat(here, key.key as string);
});

test("after a loss the newest plan and group and a revocation are restored, and newer writes are not undone", async (t) => {
  const { here, admin, save, loseTheRest, state } = await scene(t);
  await admin("POST", "/accounts", { name: "kept" });
  const key = await admin("POST", "/accounts/kept/keys", { group: "money" });
  const gone = await admin("POST", "/accounts/kept/keys", { group: "money" });
  await save();
  await admin("PUT", "/accounts/kept/plan", { plan: "pro" });
  await admin("PUT", `/keys/${key.id}/group`, { group: "limited-money" });
  await admin("PUT", `/keys/${key.id}/group`, { group: "double-money" });
  await admin("POST", `/keys/${gone.id}/revoke`);
  const before = await state("kept");
  await loseTheRest();
  const after = await state("kept");
  assert.deepEqual([after.keys, after.account], [before.keys, before.account]);
  // All of it is sent once more after newer writes, none of which may be undone.
  await save();
  await admin("PUT", `/keys/${key.id}/group`, { group: "money" });
  await admin("PUT", "/accounts/kept/plan", { plan: "free" });
  await save();
  const newest = await state("kept");
  await loseTheRest();
  const again = await state("kept");
  assert.deepEqual([again.keys, again.account], [newest.keys, newest.account]);
  assert.equal(again.keys.find(({ id }) => id === gone.id)?.status, "revoked");
  assert.equal(here.log.filter((line) => line.msg === NOT_TAKEN).length, 0);
});

test("codes and redemptions that a crash lost are restored: one card each, with its original start", async (t) => {
  const { here, admin, save, loseTheRest, state } = await scene(t);
  await admin("POST", "/accounts", { name: "holder" });
  await save();
  const made = await admin("POST", "/codes", { card: "day", count: 3 });
  const [first, second, third] = made.items as { id: string; code: string }[];
  assert.ok(first && second && third);
  await admin("POST", "/accounts/holder/redemptions", { code: first.code });
  await admin("POST", `/codes/${second.id}/void`);
  const key = await admin("POST", "/accounts/holder/keys", { group: "cards" });
  await chat(here, key.key as string);
  const before = await state("holder");
  await loseTheRest();
  const after = await state("holder");
  assert.deepEqual(after.entitlements, before.entitlements);
  assert.deepEqual(
    await Promise.all([first, second, third].map(async ({ id }) => (await here.store.getCode(id))?.state)),
    ["redeemed", "void", "unused"],
  );
  await admin("POST", "/accounts/holder/redemptions", { code: third.code });
  assert.equal((await state("holder")).entitlements.length, 2);
  assert.equal(here.log.filter((line) => line.msg === NOT_TAKEN).length, 0);
});
