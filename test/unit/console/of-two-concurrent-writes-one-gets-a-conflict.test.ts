/**
 * Two gateways write the same thing at the same moment: each checks before the other has written, and one of them gets
 * a conflict.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import type { CardKind } from "../../../src/values/catalog.ts";
import { readKey } from "../../../src/values/key.ts";
import { CATALOG, type RunningConsole, startConsole } from "./running-console.ts";
import { holding, openTestStore } from "./test-store.ts";

const card = (name: string): [string, CardKind] => [
  name,
  {
    ...{ name, plan: "pro", group: "cards", lastsMs: 86_400_000, starts: "at_redemption" },
    quotaSpend: undefined,
  },
];
const CARDS = new Map([card("day"), card("week")]);

/** A store in which one operation answers only after this many calls of it. */
function meetingAt(store: Store, operation: keyof Store, count: number): Store {
  const { promise: met, resolve } = Promise.withResolvers<void>();
  let asked = 0;
  return holding(store, operation, () => {
    asked += 1;
    if (asked === count) resolve();
    return met;
  });
}

async function two(t: TestContext, operation: keyof Store): Promise<readonly [RunningConsole, RunningConsole, Store]> {
  const real = await openTestStore(t);
  const store = meetingAt(real, operation, 2);
  const catalog = () => ({ ...CATALOG, cards: CARDS });
  const consoles = await Promise.all([startConsole(t, { store, catalog }), startConsole(t, { store, catalog })]);
  assert.equal((await consoles[0].ask("POST", "/admin/v1/accounts", { name: "alice" })).status, 201);
  return [...consoles, real];
}

test("a key with an id is created by one of them, and the other one names it", async (t) => {
  const [one, other, store] = await two(t, "listKeys");
  const wanted = { group: "big", idempotency_id: "order-1" };
  const answers = await Promise.all(
    [one, other].map(({ ask }) => ask("POST", "/admin/v1/accounts/alice/keys", wanted)),
  );
  const [made, refused] = answers.toSorted((a, b) => a.status - b.status);
  assert.deepEqual([made?.status, refused?.status, refused?.json.error.code], [201, 409, "key_exists"]);
  assert.ok(refused?.json.error.message.includes(made?.json.id));
  const form = readKey(made?.json.key);
  assert.ok(typeof form === "object");
  assert.equal((await store.readKey(form.tag, form.hash))?.key.id, made?.json.id);
});

test("an id of a gift stands for one kind, and granting another kind under it is a conflict", async (t) => {
  const [one, other, store] = await two(t, "readFigures");
  const answers = await Promise.all([
    one.ask("POST", "/admin/v1/accounts/alice/gifts", { card: "day", id: "sorry-1" }),
    other.ask("POST", "/admin/v1/accounts/alice/gifts", { card: "week", id: "sorry-1" }),
  ]);
  const [given, refused] = answers.toSorted((a, b) => a.status - b.status);
  assert.deepEqual([given?.status, refused?.status, refused?.json.error.code], [201, 409, "id_used"]);
  const tag = (await store.findAccount("alice"))?.tag;
  assert.ok(tag);
  const kinds = (await store.listCards(tag))?.cards.map((entitlement) => entitlement.card);
  assert.deepEqual(kinds, [given?.json.card]);
});
