/**
 * The catalog and the groups of keys as an owner sees them: what the account can use now, and why it cannot use the
 * rest.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import type { Store } from "../../../../src/store/contract.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import { settingsOf, testConfig } from "../../../rig/gateway.ts";
import { admitAsk, admitted, cardTerms, ridOf, settleAsk, terms } from "../../store/asks.ts";
import { startOwners } from "../sign-in/owners.ts";

const MINUTE_MS = 60_000;
const FREE = { input: "0", cached_input: "0", cache_write: "0", output: "0" };
const { catalog } = settingsOf(
  testConfig(
    { upstreamUrl: "http://127.0.0.1:9", dir: "unused" },
    {
      models: { "chat-alias": { price: FREE } },
      groups: {
        cards: { models: ["chat-1", "pro-only"] },
        mixed: { kind: "time_card", models: ["chat-1", "chat-alias", "pro-only"], fallback: "money" },
      },
    },
  ),
);

async function withOwner(t: TestContext) {
  const { store, clock, account, link, browser: open } = await startOwners(t, {}, (store) => store, catalog);
  const tag = await account("alice");
  const browser = open();
  assert.equal((await browser.post("/sign-in/link", { token: await link(tag) })).status, 200);
  /** For each group that serves the model, the reason why it would be refused there. */
  const refusals = async (name: string) => {
    const { items } = (await browser.get("/models")).json;
    const found = items.find((model: { name: string }) => model.name === name);
    const entries = found.groups.map((group: { name: string; refusal: string | null }) => [group.name, group.refusal]);
    assert.equal(
      found.usable,
      entries.some(([, refusal]: [string, string | null]) => refusal === null),
    );
    return Object.fromEntries(entries);
  };
  const keyGroup = async (name: string) => {
    const { items } = (await browser.get("/key-groups")).json;
    return items.find((group: { name: string }) => group.name === name);
  };
  const pay = (amount: bigint) =>
    store.credit(tag, { id: `p${amount}`, amount: nanoUsd(amount), kind: "topup", note: "" });
  const give = (id: string, group: string, more: Partial<Parameters<Store["grant"]>[1]> = {}) =>
    store.grant(tag, {
      ...{ id, card: "day", plan: "pro", group, lastsMs: MINUTE_MS, afterPrevious: false, reference: id },
      quota: nanoUsd(200n),
      ...more,
    });
  return { store, clock, tag, browser, refusals, keyGroup, pay, give };
}

test("money suffices if some of it is not held, and a free model needs none", async (t) => {
  const { store, tag, refusals, pay } = await withOwner(t);
  await store.createKey(tag, { id: "key_alice", hash: admitAsk({ tag, requestId: ridOf(1) }).keyHash, group: "money" });
  assert.equal((await refusals("chat-1")).money, "insufficient_balance");
  assert.equal((await refusals("chat-alias")).money, null);
  assert.equal((await refusals("pro-only")).money, "not_in_plan");
  await pay(100n);
  assert.equal((await refusals("chat-1")).money, null);
  const groups = [terms({ group: "money", holdFull: 100n })];
  admitted(await store.admit(admitAsk({ tag, requestId: ridOf(1), groups })));
  assert.equal((await refusals("chat-1")).money, "insufficient_balance", "all of it is held");
  await pay(1n);
  assert.equal((await refusals("chat-1")).money, null);
});

test("a card suffices from its start to its end, unless its quota is spent or held", async (t) => {
  const { store, clock, tag, refusals, keyGroup, give } = await withOwner(t);
  await store.createKey(tag, { id: "key_alice", hash: admitAsk({ tag, requestId: ridOf(1) }).keyHash, group: "cards" });
  const now = async () => [(await refusals("chat-1")).cards, (await keyGroup("cards")).card_runs];
  assert.deepEqual(await now(), ["no_entitlement", false]);
  await give("later", "mixed", { fromMs: clock.wallMs() + 3 * MINUTE_MS });
  assert.deepEqual([await now(), (await keyGroup("mixed")).card_runs], [["no_entitlement", false], false]);
  await give("first", "cards");
  assert.deepEqual(await now(), [null, true]);
  assert.equal(
    (await refusals("pro-only")).money,
    "insufficient_balance",
    "the plan of the card applies in other groups too",
  );
  assert.equal(
    (await refusals("chat-1")).mixed,
    "insufficient_balance",
    "the quota of the card does not apply in other groups",
  );
  const ask = (number: number) =>
    admitAsk({ tag, requestId: ridOf(number), plans: ["pro"], groups: [cardTerms({ holdFull: 100n, holdMin: 100n })] });
  const one = ask(1);
  await store.settle(settleAsk(one, admitted(await store.admit(one)), { amount: 100n }));
  assert.deepEqual(await now(), [null, true]);
  admitted(await store.admit(ask(2)));
  assert.deepEqual(await now(), ["quota_used", true], "half of it is spent and half is held");
  await give("second", "cards", { quota: undefined, afterPrevious: true });
  assert.deepEqual(await now(), ["quota_used", true], "the second card starts after the first");
  await clock.advance(MINUTE_MS - 1);
  assert.deepEqual(await now(), ["quota_used", true]);
  await clock.advance(1);
  assert.deepEqual(await now(), [null, true], "without a quota");
  await clock.advance(MINUTE_MS);
  assert.deepEqual(await now(), ["no_entitlement", false]);
});

test("if money pays when no card does, either of them suffices", async (t) => {
  const { refusals, pay, give } = await withOwner(t);
  assert.equal((await refusals("chat-1")).mixed, "insufficient_balance");
  await pay(1n);
  assert.equal((await refusals("chat-1")).mixed, null);
  const other = await withOwner(t);
  await other.give("first", "mixed");
  assert.equal((await other.refusals("chat-1")).mixed, null);
  await give("first", "mixed", { quota: nanoUsd(0n) });
  assert.equal((await refusals("chat-1")).mixed, null, "when the card is used up, the balance pays");
});

test("a group of cards lists what its cards would open, and no other group does", async (t) => {
  const { keyGroup, give } = await withOwner(t);
  const models = async (name: string) => (await keyGroup(name)).models;
  assert.deepEqual(await models("money"), [
    ...["chat-1", "messages-1", "responses-1", "chat-alias", "messages-alias", "responses-alias"],
  ]);
  assert.deepEqual(await models("cards"), ["chat-1", "pro-only"]);
  assert.deepEqual(
    await models("mixed"),
    ["chat-1", "chat-alias"],
    "the group gives no more models without its own card",
  );
  assert.deepEqual([(await keyGroup("mixed")).falls_back, (await keyGroup("cards")).falls_back], [true, false]);
  await give("first", "cards");
  // The models that a card opens are open in other groups, too.
  assert.ok((await models("money")).includes("pro-only"));
});
