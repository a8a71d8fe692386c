// docs/money.md, limits of a key and of an account, through the whole gateway: what a client is answered and what it is
// charged.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { budgetField } from "../../../../src/store/limits/budgets.ts";
import { type LimitSet, limitsText } from "../../../../src/store/limits/limits.ts";
import { parseUsd } from "../../../../src/values/money.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { ask, assertAtRest, errorOf, PROTOCOL_LIST, usageLines } from "../../protocol/whole/asking.ts";
import { card, sell } from "../cards/rig.ts";

let here: GatewayHere;
before(async () => {
  const config = (places: ConfigPlaces) => testConfig(places, { groups: { cards: { fallback: "money" } } });
  here = await startGatewayHere({ config });
});
after(() => here?.close());

const budgets = (spans: Record<string, string>): LimitSet => ({
  budgets: Object.fromEntries(Object.entries(spans).map(([span, usd]) => [span, parseUsd(usd)])),
});

async function limited(limits: LimitSet, options: Parameters<GatewayHere["account"]>[0] = {}): Promise<TestAccount> {
  const account = await here.account(options);
  await here.store.changeKey(account.tag, account.keyId, { limits: limitsText(limits) });
  return account;
}

const chargedTo = async (account: TestAccount) =>
  (await usageLines(here, account)).reduce((sum, line) => sum + line.amount, 0n);

const spentOf = async (account: TestAccount) => {
  const [key] = await here.store.listKeys(account.tag);
  return key?.budgets.get(budgetField({ span: "day", ofAccount: false }, account.keyId))?.now;
};

test("a budget lowers the output limit to what is left of it, is never exceeded, and its refusal says when it resets", async () => {
  const account = await limited(budgets({ day: "0.002" }));
  let clamped = 0;
  let reply = await ask(here, "chat", account.key);
  for (; reply.status === 200; reply = await ask(here, "chat", account.key)) {
    await reply.text();
    if (reply.headers.has("x-tollgate-clamped")) clamped++;
  }
  assert.ok(clamped > 0, "the last requests got a lower limit");
  assert.equal(reply.status, 403);
  const midnight = `${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)}T00:00:00Z`;
  assert.equal(reply.headers.get("x-tollgate-budget-reset"), midnight);
  assert.equal(reply.headers.get("retry-after"), null);
  const error = await errorOf(reply);
  assert.equal(error.cause, "key_budget");
  assert.ok(error.message.startsWith("The rest of the key's daily budget does not cover"), error.message);
  assert.ok(error.message.includes(midnight));
  await assertAtRest(here, account);
  const charged = await chargedTo(account);
  const spent = await spentOf(account);
  assert.deepEqual([spent?.spent, spent?.held], [charged, 0n]);
  assert.ok(charged > 0n && charged <= 2_000_000n, `${charged}`);
  for (const protocol of PROTOCOL_LIST) {
    const refused = await errorOf(await ask(here, protocol, account.key));
    assert.equal(refused.cause, "key_budget");
    assert.equal(refused.type, protocol === "messages" ? "billing_error" : "permission_error");
  }
});

test("streams without a limit end where the account's budget ends, however many run at once", async () => {
  const account = await here.account({ usd: "10" });
  await here.store.setAccountLimits(account.tag, limitsText(budgets({ month: "0.5" })));
  const stream = async () => {
    const content = `simulate: ${JSON.stringify({ text: "word ".repeat(20_000) })}`;
    const asked = { stream: true, max_tokens: undefined, messages: [{ role: "user", content }] };
    const reply = await ask(here, "chat", account.key, asked);
    const text = await reply.text();
    return reply.status === 200 ? "ran" : (JSON.parse(text) as { error: { cause: string } }).error.cause;
  };
  const ends = await Promise.all(Array.from({ length: 12 }, stream));
  await assertAtRest(here, account);
  const charged = await chargedTo(account);
  assert.ok(ends.includes("ran"));
  assert.ok(charged > 400_000_000n && charged <= 500_000_000n, `${charged}`);
  const used = (await here.store.readAccountBudgets(account.tag))?.get("M")?.now;
  assert.deepEqual([used?.spent, used?.held], [charged, 0n]);
});

test("a key's own rate limit is reported with its own figure; its models and addresses apply on every path", async () => {
  const account = await limited({ requestsPerMinute: 2, models: ["chat-*"] });
  for (let i = 0; i < 2; i++) {
    const reply = await ask(here, "chat", account.key);
    assert.equal(reply.headers.get("x-ratelimit-limit-requests"), "2");
    await reply.text();
  }
  const refused = await ask(here, "chat", account.key);
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  assert.match((await errorOf(refused)).message, /The limit of this key is 2 requests per minute\./);
  const other = await ask(here, "messages", account.key);
  assert.deepEqual([other.status, (await errorOf(other)).cause], [403, "model_not_allowed"]);
  const listed = await fetch(`${here.url}/v1/models`, { headers: { authorization: `Bearer ${account.key}` } });
  const { data } = (await listed.json()) as { data: { id: string }[] };
  assert.ok(data.length > 0 && data.every(({ id }) => id.startsWith("chat-")), JSON.stringify(data));

  const counted = await fetch(`${here.url}/v1/messages/count_tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "messages-1", messages: [{ role: "user", content: "hello" }] }),
  });
  assert.deepEqual([counted.status, (await errorOf(counted)).cause], [403, "model_not_allowed"]);

  const elsewhere = await limited({ addresses: ["192.0.2.0/24"] });
  const asked = await ask(here, "chat", elsewhere.key);
  assert.deepEqual([asked.status, (await errorOf(asked)).cause], [403, "address_not_allowed"]);
  const models = await fetch(`${here.url}/v1/models`, { headers: { authorization: `Bearer ${elsewhere.key}` } });
  assert.equal(models.status, 403);
  const broken = await ask(here, "chat", elsewhere.key, {}, { raw: "{" });
  assert.equal(broken.status, 403, "the key is checked before the body");
  await here.store.changeKey(elsewhere.tag, elsewhere.keyId, {
    caps: "",
    limits: limitsText({ addresses: ["127.0.0.0/8"] }),
  });
  assert.equal((await ask(here, "chat", elsewhere.key)).status, 200);
});

test("an expired key works again with its next request after it gets a new expiry", async () => {
  const account = await here.account();
  await here.store.changeKey(account.tag, account.keyId, { expiresAtMs: Date.now() - 60_000 });
  for (let i = 0; i < 2; i++) {
    const refused = await ask(here, "chat", account.key);
    assert.deepEqual([refused.status, (await errorOf(refused)).cause], [401, "expired_key"]);
  }
  await here.store.changeKey(account.tag, account.keyId, { expiresAtMs: "never" });
  assert.equal((await ask(here, "chat", account.key)).status, 200);
});

test("with fallback the card pays first, then the balance, and the answer says which", async () => {
  const account = await here.account({ usd: "1", group: "cards" });
  const [code] = await sell(here.store, 1, card({ quota: 3_000_000n }));
  assert.ok(code);
  await here.store.redeem({ hash: code.hash, tag: account.tag });
  const payers: (string | null)[] = [];
  for (let i = 0; i < 40 && payers.at(-1) !== "balance"; i++) {
    const reply = await ask(here, "chat", account.key);
    assert.equal(reply.status, 200);
    await reply.text();
    payers.push(reply.headers.get("x-tollgate-paid-by"));
  }
  assert.equal(payers[0], "card");
  assert.equal(payers.at(-1), "balance");
  await assertAtRest(here, account);
  const lines = await usageLines(here, account);
  assert.equal(lines[0]?.debit, `ent_${code.id}`);
  assert.equal(lines.at(-1)?.debit, `acct_${account.tag}`);
  assert.equal(lines.at(-1)?.credit, "revenue:cards");
});

test("explain names the budget that would refuse, and how much of each budget is used", async () => {
  const account = await limited(budgets({ day: "0.0000001" }));
  const explained = await fetch(`${here.url}/v1/explain?protocol=chat`, {
    method: "POST",
    headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-1", max_tokens: 400, messages: [{ role: "user", content: "hello" }] }),
  });
  const said = (await explained.json()) as {
    expected: { status: number; cause: string };
    steps: { step: string; ok: boolean | null; words: string }[];
  };
  assert.deepEqual([said.expected.status, said.expected.cause], [403, "key_budget"]);
  assert.match(said.steps.find(({ step }) => step === "funds")?.words ?? "", /daily budget/);
});
