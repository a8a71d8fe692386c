// docs/failure-model.md row 34, through the whole gateway: which funds a key's group may use, and what a client is
// answered when they are used up.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { CardFacts } from "../../../../src/store/records.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { card, DAY_MS, sell } from "./rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here?.close());

async function redeem(account: TestAccount, facts: CardFacts = card()): Promise<string> {
  const [code] = await sell(here.store, 1, facts);
  assert.ok(code);
  const answer = await here.store.redeem({ hash: code.hash, tag: account.tag });
  assert.equal(answer.outcome, "redeemed");
  return code.id;
}

/** Asserts status, cause and remedy of the refusal, and that nothing was charged or sent upstream. */
async function refusalOf(account: TestAccount, protocol: (typeof PROTOCOL_LIST)[number] = "chat") {
  const seen = here.simulator.count;
  const reply = await ask(here, protocol, account.key);
  const { cause, remedy, message, type } = await errorOf(reply);
  assert.equal(here.simulator.count, seen, "nothing is sent to the upstream");
  await assertAtRest(here, account);
  return { status: reply.status, cause, remedy, message, type };
}

test("row 34: a key with only cards in a pay-per-use group gets 403 in every protocol, and is advised to top up or change the group", async () => {
  const account = await here.account({ usd: "0", group: "money", plan: "free" });
  await redeem(account);
  for (const protocol of PROTOCOL_LIST) {
    const { status, cause, remedy, message } = await refusalOf(account, protocol);
    assert.deepEqual([status, cause], [403, "insufficient_balance"]);
    assert.match(remedy, /time-card group/);
    assert.match(message, /forbidden/);
  }
  await here.store.changeKey(account.tag, account.keyId, { group: "cards" });
  for (const protocol of PROTOCOL_LIST) {
    const reply = await ask(here, protocol, account.key);
    assert.equal(reply.status, 200, "the next request uses the new group");
    await reply.text();
    await assertAtRest(here, account);
  }
  const lines = await usageLines(here, account);
  assert.equal(lines.length, 3);
  for (const line of lines) assert.match(line.debit, /^ent_code_/);
  assert.equal((await here.store.getAccount(account.tag))?.balance, 0n);
});

test("row 34: a card that has just expired gets 403 with cause and remedy, whatever the balance; the next card works at once", async () => {
  const account = await here.account({ usd: "10", group: "cards" });
  const before = await refusalOf(account);
  assert.deepEqual([before.status, before.cause], [403, "no_entitlement"]);
  await redeem(account, card({ lastsMs: 1 }));
  while ((await here.store.listCards(account.tag))?.cards.length !== 0);
  for (const protocol of PROTOCOL_LIST) {
    const { status, cause, remedy } = await refusalOf(account, protocol);
    assert.deepEqual([status, cause], [403, "no_entitlement"]);
    assert.match(remedy, /Redeem a time card/);
  }
  await redeem(account);
  const reply = await ask(here, "chat", account.key);
  assert.equal(reply.status, 200);
  await reply.text();
  await assertAtRest(here, account);
  assert.equal(
    (await here.store.getAccount(account.tag))?.balance,
    10_000_000_000n,
    "the balance is not for card groups",
  );
});

test("a used-up card gets 403 with cause and remedy; a card that starts later does not help", async () => {
  const account = await here.account({ usd: "10", group: "cards" });
  await redeem(account, card({ quota: 1n }));
  const { status, cause, remedy } = await refusalOf(account);
  assert.deepEqual([status, cause], [403, "quota_used"]);
  assert.match(remedy, /another time card/);
  await redeem(account, card({ starts: "after_previous" }));
  assert.equal((await refusalOf(account)).cause, "quota_used");
});

test("the card that ends first pays until it cannot cover the useful minimum", async () => {
  const account = await here.account({ usd: "0", group: "cards" });
  const later = await redeem(account, card({ lastsMs: 7 * DAY_MS }));
  const sooner = await redeem(account, card({ quota: 1_000_000n }));
  const payers: string[] = [];
  while (payers.filter((payer) => payer === `ent_${later}`).length < 2) {
    const reply = await ask(here, "chat", account.key);
    assert.equal(reply.status, 200);
    await reply.text();
    await assertAtRest(here, account);
    payers.push((await usageLines(here, account)).at(-1)?.debit ?? "");
    assert.ok(payers.length < 100, "the first card does not expire");
  }
  assert.equal(payers[0], `ent_${sooner}`);
  assert.equal(
    payers.lastIndexOf(`ent_${sooner}`),
    payers.indexOf(`ent_${later}`) - 1,
    "the second card starts after the first",
  );
  const cards = (await here.store.listCards(account.tag))?.cards ?? [];
  assert.deepEqual(
    cards.map(({ id }) => id),
    [sooner, later],
  );
  const spent = (id: string) => cards.find((one) => one.id === id)?.spent ?? 0n;
  const charged = (await usageLines(here, account)).reduce((sum, line) => sum + line.amount, 0n);
  assert.equal(spent(sooner) + spent(later), charged);
});

test("a refusal for funds begins with its cause, then the wording of the specification, and has the protocol's own error type", async () => {
  const poor = await here.account({ usd: "0", group: "money" });
  const cardless = await here.account({ usd: "10", group: "cards" });
  const used = await here.account({ usd: "0", group: "cards" });
  await redeem(used, card({ quota: 1n }));
  const expected = [
    [poor, "insufficient_balance", "The balance does not cover the least that this request can cost."],
    [cardless, "no_entitlement", "No time card of this group that includes the model is running."],
    [used, "quota_used", "The running time card does not have enough quota left for this request."],
  ] as const;
  for (const [account, cause, first] of expected) {
    for (const protocol of PROTOCOL_LIST) {
      const refused = await refusalOf(account, protocol);
      assert.deepEqual([refused.status, refused.cause], [403, cause]);
      const words = `${first} Access to the upstream is forbidden, contact the administrator. Model: "${protocol}-1".`;
      assert.ok(refused.message.startsWith(words), refused.message);
      assert.equal(refused.type, protocol === "messages" ? "billing_error" : "permission_error");
    }
  }
});
