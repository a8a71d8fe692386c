/**
 * The sentences with which `explain` describes the decisions about a request, and why it would be refused, have Chinese
 * words on Chinese pages. What has none stays as the gateway wrote it, and so do names of groups, plans and models.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { nanoUsd } from "../../../../src/values/money.ts";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";

// All that the pages' texts need of a browser.
Object.assign(globalThis, {
  document: { documentElement: { lang: "" } },
  localStorage: { getItem: () => "zh" },
});

interface Explanation {
  readonly expected: { readonly status: number; readonly cause: string | null; readonly message: string };
  readonly steps: readonly { readonly step: string; readonly ok: boolean | null; readonly words: string }[];
  readonly routes: readonly { readonly translation: string | null }[];
}

// A computed path that the compiler does not follow: the pages are checked with a configuration of their own, for
// browsers.
const page: string = new URL("../../../../src/console/pages/parts/explained.ts", import.meta.url).href;
const { inWords, reasonsOf } = (await import(page)) as {
  inWords(sentence: string): string;
  reasonsOf(answer: Explanation): readonly string[];
};

const DAY_MS = 86_400_000;
/** Two words of English in a row, other than the program's own names. */
const ENGLISH = /\b[A-Za-z']{2,} [a-z']{2,}/;

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        groups: {
          total: { kind: "pay_per_use", models: ["chat-*"], limits: { requests_per_minute: 9 } },
          exact: { kind: "pay_per_use", models: ["chat-*"], limits: { tokens_per_minute: 900_000 } },
          waiting: { kind: "time_card", models: ["chat-*"] },
        },
      }),
  });
});
after(() => here.close());

async function explained(account: TestAccount, more: object = {}): Promise<Explanation> {
  const response = await fetch(`${here.adminUrl}/admin/v1/explain`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${here.gateway.adminToken}`,
      "content-type": "application/json",
      connection: "close",
    },
    body: JSON.stringify({ key_id: account.keyId, model: "chat-1", protocol: "chat", ...more }),
  });
  assert.equal(response.status, 200);
  return (await response.json()) as Explanation;
}

const grant = ({ tag }: TestAccount, number: number, more: object = {}) =>
  here.store.grant(tag, {
    id: `code_${tag}${String(number).repeat(6)}`,
    card: "day",
    plan: "pro",
    group: "cards",
    lastsMs: DAY_MS,
    afterPrevious: true,
    quota: nanoUsd(1_000_000_000n),
    reference: `code_${tag}${String(number).repeat(6)}`,
    ...more,
  });

/** Accounts, and what is asked with their keys. */
const CASES: readonly {
  readonly name: string;
  readonly account?: Parameters<GatewayHere["account"]>[0];
  readonly prepare?: (account: TestAccount) => Promise<unknown>;
  readonly ask?: object;
  readonly cause?: string;
}[] = [
  { name: "rich" },
  { name: "translated", ask: { model: "messages-1" } },
  { name: "a limit of its own", ask: { max_tokens: 400 } },
  { name: "two limits", account: { group: "limited-money" } },
  { name: "a group named like a word", account: { group: "total" } },
  { name: "another", account: { group: "exact" } },
  { name: "lowered", account: { usd: "0.402" }, ask: { max_tokens: 400, input_bytes: 700_000 } },
  { name: "card", account: { group: "cards", usd: "0" }, prepare: (one) => grant(one, 1) },
  {
    name: "two cards",
    account: { group: "cards", usd: "0" },
    prepare: async (one) => [await grant(one, 1), await grant(one, 2)],
  },
  {
    name: "card without a quota",
    account: { group: "cards", usd: "0" },
    prepare: (one) => grant(one, 1, { quota: undefined }),
  },
  { name: "no card", account: { group: "cards" }, cause: "no_entitlement" },
  {
    name: "card used",
    account: { group: "cards" },
    prepare: (one) => grant(one, 1, { quota: nanoUsd(1n) }),
    cause: "quota_used",
  },
  { name: "poor", account: { usd: "0" }, cause: "insufficient_balance" },
  { name: "unknown", ask: { model: "nothing-like-it" }, cause: "unknown_model" },
  { name: "mistyped", ask: { model: "chat-l" }, cause: "unknown_model" },
  { name: "plan", ask: { model: "pro-only" }, cause: "not_in_plan" },
  { name: "group", ask: { model: "other-family" }, cause: "group_mismatch" },
  { name: "lost group", account: { group: "no-such-group" }, cause: "group_mismatch" },
  { name: "large", ask: { input_bytes: 10 ** 12 }, cause: "body_too_large" },
  {
    name: "revoked",
    prepare: ({ tag, keyId }) => here.store.revokeKey(tag, keyId),
    cause: "revoked_key",
  },
  {
    name: "expired",
    prepare: ({ tag, keyId }) => here.store.changeKey(tag, keyId, { expiresAtMs: Date.now() - 1 }),
    cause: "expired_key",
  },
];

for (const { name, account: options = {}, prepare, ask, cause } of CASES) {
  test(`${name}: each decision, and the reason of a refusal, is in Chinese`, async () => {
    const account = await here.account(options);
    await prepare?.(account);
    const answer = await explained(account, ask);
    assert.equal(answer.expected.cause, cause ?? null, JSON.stringify(answer.expected));
    const steps = answer.steps.filter(({ ok }) => ok !== null).map(({ words }) => inWords(words));
    const routes = answer.routes.flatMap(({ translation }) => translation ?? []).map(inWords);
    const shown = [...steps, ...routes, ...reasonsOf(answer)];
    for (const words of shown) {
      assert.match(words, /[\u4e00-\u9fff]/);
      assert.doesNotMatch(words, ENGLISH);
    }
  });
}

async function limited(change: object, caps = false): Promise<TestAccount> {
  const account = await here.account();
  const response = await fetch(`${here.adminUrl}/admin/v1/keys/${account.keyId}/${caps ? "caps" : "limits"}`, {
    method: "PUT",
    headers: {
      authorization: `Bearer ${here.gateway.adminToken}`,
      "content-type": "application/json",
      connection: "close",
    },
    body: JSON.stringify(change),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return account;
}

test("budgets and limits of a key", async () => {
  for (const span of ["day", "week", "month", "total"]) {
    const account = await limited({ budgets_usd: { [span]: "0.01" } });
    const answer = await explained(account, { max_tokens: 30_000, input_bytes: 700_000 });
    assert.equal(answer.expected.cause, "key_budget", JSON.stringify(answer.expected));
    for (const words of reasonsOf(answer)) assert.doesNotMatch(words, ENGLISH);
    assert.match(reasonsOf(answer).join(), /密钥的(?:每日|每周|每月|总)预算/);
  }
  const models = await explained(await limited({ models: ["chat-alias"] }));
  assert.equal(models.expected.cause, "model_not_allowed");
  for (const words of reasonsOf(models)) assert.doesNotMatch(words, ENGLISH);
});

test("names stay as they are, and so does a sentence without words", async () => {
  const { steps } = await explained(await here.account({ group: "total" }));
  assert.equal(inWords(steps.find(({ step }) => step === "group")?.words ?? ""), "分组 total 提供该模型。");
  const unknown = "A later version says this.";
  assert.equal(inWords(unknown), unknown);
  const expected = { status: 400, cause: "untranslatable", message: `The request cannot be carried. ${unknown}` };
  const answer = { expected, steps: [{ step: "routes", ok: false, words: unknown }], routes: [] };
  assert.equal(reasonsOf(answer).at(-1), expected.message);
});
