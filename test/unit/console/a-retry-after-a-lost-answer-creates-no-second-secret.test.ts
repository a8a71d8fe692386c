/**
 * Writes whose answer contains a secret that is shown once: with an idempotency_id they count once, and a repeated
 * request names what was created.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { CardKind } from "../../../src/values/catalog.ts";
import { CATALOG, startConsole } from "./running-console.ts";

const DAY: CardKind = {
  name: "day",
  plan: "pro",
  group: "cards",
  lastsMs: 86_400_000,
  starts: "at_redemption",
  quotaSpend: undefined,
};
const WITH_CARDS = { catalog: () => ({ ...CATALOG, cards: new Map([["day", DAY]]) }) };

test("a key whose answer was lost is named by the next attempt, so that it can be revoked", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts", { name: "bob" });
  const wanted = { group: "big", idempotency_id: "order-1" };
  const made = await ask("POST", "/admin/v1/accounts/alice/keys", wanted);
  assert.equal(made.status, 201);
  const again = await ask("POST", "/admin/v1/accounts/alice/keys", wanted);
  assert.equal(again.status, 409);
  assert.equal(again.json.error.code, "key_exists");
  assert.ok(again.json.error.message.includes(made.json.id));
  assert.ok(!again.text.includes(made.json.key));
  assert.equal((await ask("POST", `/admin/v1/keys/${made.json.id}/revoke`)).status, 200);
  assert.equal((await ask("POST", "/admin/v1/accounts/alice/keys", wanted)).status, 409, "a revoked key stays revoked");
  // The id is scoped to the account.
  assert.equal((await ask("POST", "/admin/v1/accounts/bob/keys", wanted)).status, 201);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice/keys")).json.items.length, 1);
});

test("of twenty parallel requests one creates the key, and only the text in its answer is valid", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const wanted = { group: "big", idempotency_id: "order-1" };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => ask("POST", "/admin/v1/accounts/alice/keys", wanted)),
  );
  const made = answers.filter(({ status }) => status === 201);
  assert.equal(made.length, 1);
  assert.equal(answers.filter(({ status }) => status === 409).length, 19);
  const { readKey } = await import("../../../src/values/key.ts");
  const form = readKey(made[0]?.json.key);
  assert.ok(typeof form === "object");
  assert.equal((await store.readKey(form.tag, form.hash))?.key.id, made[0]?.json.id);
});

test("codes are created once, by repeated and by parallel requests, and the answer says when", async (t) => {
  const { ask } = await startConsole(t, WITH_CARDS);
  const wanted = { card: "day", count: 3, idempotency_id: "batch-1" };
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask("POST", "/admin/v1/codes", wanted)));
  const [made] = answers.filter(({ status }) => status === 201);
  assert.equal(answers.filter(({ status }) => status === 409).length, 9);
  const again = await ask("POST", "/admin/v1/codes", { ...wanted, count: 2 });
  assert.equal(again.status, 409);
  assert.equal(again.json.error.code, "codes_exist");
  assert.ok(again.json.error.message.includes(made?.json.items[0].id));
  const listed = await ask("GET", "/admin/v1/codes");
  assert.deepEqual(
    listed.json.items.map(({ id }: { id: string }) => id).sort(),
    made?.json.items.map(({ id }: { id: string }) => id).sort(),
  );
});
