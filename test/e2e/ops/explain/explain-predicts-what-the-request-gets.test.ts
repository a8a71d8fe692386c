/**
 * `explain` cannot disagree with the gateway: every request is explained first and then sent, and status, cause, remedy
 * and a lowered limit must be as predicted. Explaining does not change the account.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type NanoUsd, nanoUsd } from "../../../../src/values/money.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import {
  type AskOptions,
  ask,
  assertAtRest,
  bodyOf,
  type Fields,
  LIMIT_FIELD,
  PROTOCOL_LIST,
} from "../../protocol/whole/asking.ts";

const DAY_MS = 86_400_000;
/** Enough for the useful minimum of an answer to a short body, but not for all of it. */
const PART = nanoUsd(1_500_000n);

let here: GatewayHere;
const accounts = new Map<string, TestAccount>();

before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, ({ groups, upstreams }) => ({
        groups: { money: { models: [...groups.money.models, "blind*", "keeping"] } },
        upstreams: { "up-keeping": { ...upstreams["up-responses"], stateful: true } },
        models: {
          keeping: {
            plans: ["free"],
            price: { input: "1", output: "10" },
            context_tokens: 9000,
            default_output_tokens: 100,
            routes: [{ upstream: "up-keeping" }],
          },
          blind: {
            plans: ["free"],
            price: { input: "1", output: "10" },
            context_tokens: 9000,
            routes: [{ upstream: "up-chat", capabilities: { vision: false } }],
          },
        },
      })),
  });
  const make = async (name: string, options: Parameters<GatewayHere["account"]>[0]) =>
    accounts.set(name, await here.account(options));
  await make("rich", {});
  await make("poor", { usd: "0" });
  for (const protocol of PROTOCOL_LIST) {
    await make(`part, ${protocol}`, { usd: "0.0015" });
    await make(`card part, ${protocol}`, { group: "cards", usd: "0" });
    await grant(`card part, ${protocol}`, "pro", PART);
  }
  await make("kept part", { usd: "0.08" });
  await make("double", { group: "double-money" });
  await make("no card", { group: "cards" });
  await make("card", { group: "cards", usd: "0" });
  await make("card used", { group: "cards" });
  await make("card free", { group: "cards", usd: "0" });
  await make("card elsewhere", { group: "cards" });
  await make("pro by card", { usd: "5" });
  await make("lost group", { group: "no-such-group" });
  await make("revoked", {});
  await make("suspended", {});
  await make("expired", {});
  await make("suspended account", {});
  await make("closed account", {});
  await here.store.changeAccount(accountOf("suspended account").tag, { status: "suspended" });
  await here.store.closeAccount(accountOf("closed account").tag);
  await grant("card", "pro", nanoUsd(1_000_000_000n));
  await grant("card used", "pro", nanoUsd(1n));
  await grant("card free", "pro", undefined);
  await grant("card elsewhere", "basic", undefined);
  await grant("pro by card", "pro", undefined);
  const { tag, keyId } = accountOf("revoked");
  await here.store.revokeKey(tag, keyId);
  for (const [name, change] of [
    ["suspended", { status: "suspended" }],
    ["expired", { expiresAtMs: Date.now() - 1 }],
  ] as const) {
    const paused = accountOf(name);
    await here.store.changeKey(paused.tag, paused.keyId, change);
  }
});
after(() => here.close());

function accountOf(name: string): TestAccount {
  const account = accounts.get(name);
  assert.ok(account, name);
  return account;
}

async function grant(name: string, plan: string, quota: NanoUsd | undefined): Promise<void> {
  const { tag } = accountOf(name);
  const id = `code_${tag}${"x".repeat(6)}`;
  await here.store.grant(tag, {
    id,
    card: "day",
    plan,
    group: "cards",
    lastsMs: DAY_MS,
    afterPrevious: false,
    quota,
    reference: id,
  });
}

interface Case {
  readonly account: string;
  readonly fields?: (protocol: Protocol) => Fields;
  readonly options?: AskOptions;
  /** `200`, or status and cause. */
  readonly expected: string;
}

const image = "data:image/png;base64,iVBORw0KGgo=";
const IMAGE_TURN: Readonly<Record<Protocol, Fields>> = {
  chat: { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: image } }] }] },
  messages: {
    messages: [
      {
        role: "user",
        content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } }],
      },
    ],
  },
  responses: { input: [{ role: "user", content: [{ type: "input_image", image_url: image }] }] },
};

/** A stream whose upstream keeps the reply, if the client speaks responses. */
const KEPT: Fields = { model: "keeping", stream: true, store: undefined };

const CASES: readonly Case[] = [
  { account: "rich", expected: "200" },
  { account: "rich", fields: () => ({ stream: true }), expected: "200" },
  { account: "rich", fields: (p) => ({ model: p === "chat" ? "messages-1" : "chat-1" }), expected: "200" },
  { account: "rich", fields: (p) => ({ model: p === "responses" ? "messages-1" : "responses-1" }), expected: "200" },
  { account: "double", fields: () => ({ model: "chat-1" }), expected: "200" },
  { account: "double", fields: () => ({ model: "messages-1" }), expected: "403 group_mismatch" },
  { account: "revoked", expected: "401 revoked_key" },
  { account: "revoked", options: { raw: "{" }, expected: "401 revoked_key" },
  { account: "suspended", expected: "401 suspended" },
  { account: "suspended account", expected: "401 suspended" },
  { account: "closed account", expected: "401 revoked_key" },
  { account: "expired", expected: "401 expired_key" },
  { account: "rich", options: { raw: "{]" }, expected: "400 not_json" },
  { account: "poor", options: { raw: "[]" }, expected: "400 not_json" },
  { account: "rich", options: { raw: '{"model":"a","model":"b"}' }, expected: "400 duplicate_field" },
  { account: "rich", fields: () => ({ model: undefined }), expected: "400 missing_field" },
  { account: "rich", fields: () => ({ model: 7 }), expected: "400 wrong_type" },
  { account: "rich", fields: () => ({ stream: "yes" }), expected: "400 wrong_type" },
  { account: "rich", fields: (p) => ({ [LIMIT_FIELD[p]]: 1.5 }), expected: "400 wrong_type" },
  {
    account: "rich",
    fields: (p) => (p === "responses" ? { input: undefined, messages: [] } : { messages: undefined, input: "x" }),
    expected: "400 wrong_protocol",
  },
  {
    account: "rich",
    options: { headers: { "content-type": "text/plain" } },
    expected: "415 unsupported_media_type",
  },
  { account: "rich", fields: () => ({ model: "Typed-Wrong" }), expected: "404 unknown_model" },
  { account: "poor", fields: () => ({ model: "typed\u202ewrong" }), expected: "404 unknown_model" },
  { account: "rich", fields: () => ({ service_tier: "priority" }), expected: "400 unsupported_parameter" },
  { account: "rich", fields: () => ({ model: "pro-only" }), expected: "404 not_in_plan" },
  { account: "pro by card", fields: () => ({ model: "pro-only" }), expected: "200" },
  { account: "lost group", expected: "403 group_mismatch" },
  { account: "lost group", fields: () => ({ model: "pro-only" }), expected: "404 not_in_plan" },
  { account: "rich", fields: () => ({ model: "other-family" }), expected: "403 group_mismatch" },
  { account: "no card", fields: () => ({ model: "other-family" }), expected: "403 group_mismatch" },
  { account: "poor", expected: "403 insufficient_balance" },
  { account: "part", expected: "200" },
  {
    account: "rich",
    fields: (p) => ({ ...KEPT, [LIMIT_FIELD[p]]: p === "messages" ? 100 : undefined }),
    expected: "200",
  },
  {
    account: "kept part",
    fields: (p) => ({ ...KEPT, [LIMIT_FIELD[p]]: p === "messages" ? 100 : undefined }),
    expected: "200",
  },
  { account: "no card", expected: "403 no_entitlement" },
  { account: "card elsewhere", expected: "403 no_entitlement" },
  { account: "card used", expected: "403 quota_used" },
  { account: "card", expected: "200" },
  { account: "card part", expected: "200" },
  { account: "card free", expected: "200" },
  {
    account: "rich",
    fields: (p) => ({ model: "blind", ...(p === "chat" ? {} : IMAGE_TURN[p]) }),
    expected: "by route",
  },
  {
    account: "rich",
    fields: (p) =>
      p === "responses" ? { previous_response_id: "resp_1" } : { tools: [{ type: "file", file_id: "file_1" }] },
    expected: "400 unsupported_parameter",
  },
  {
    account: "rich",
    fields: (p) => ({ model: p === "messages" ? "chat-1" : "messages-1", seed: 7, logit_bias: { 1: 1 }, top_k: 3 }),
    options: { headers: { "x-tollgate-strict": "1" } },
    expected: "by route",
  },
];

// biome-ignore lint/suspicious/noExplicitAny: the test fails on the wrong shape.
type Explanation = any;

for (const protocol of PROTOCOL_LIST) {
  for (const [index, one] of CASES.entries()) {
    test(`${protocol} ${index}: ${one.account}, ${one.expected}`, async () => {
      const account = accounts.get(`${one.account}, ${protocol}`) ?? accountOf(one.account);
      const fields = one.fields?.(protocol) ?? {};
      const before = await here.store.inspect(account.tag);
      const upstream = here.simulator.count;
      const asked = { ...one.options, path: `/v1/explain?protocol=${protocol}` };
      const reply = await ask(here, protocol, account.key, fields, asked);
      const told = (await reply.json()) as Explanation;
      await assertAtRest(here, account);
      assert.deepEqual(await here.store.inspect(account.tag), before, "explain changes nothing in the store");
      assert.equal(here.simulator.count, upstream, "explain sends nothing to an upstream");

      const real = await ask(here, protocol, account.key, fields, one.options);
      const answer = real.status === 200 ? {} : ((await real.json()) as Explanation).error;
      if (real.status === 200) await real.text();
      await assertAtRest(here, account);
      const foretold = reply.status === 200 ? told.expected : { ...told.error, status: reply.status };
      const row = ({ status, cause, remedy }: Explanation) => [status, cause ?? null, remedy ?? null];
      assert.deepEqual(row(foretold), row({ ...answer, status: real.status }), JSON.stringify(told));
      if (one.expected !== "by route") {
        const [status, cause] = one.expected.split(" ");
        assert.deepEqual([real.status, answer.cause], [Number(status), cause]);
      }
      if (real.status !== 200) return;
      assert.equal(told.clamped, real.headers.get("x-tollgate-clamped"));
      const translation = told.routes[0].translation;
      assert.equal(translation === "none needed" ? null : translation, real.headers.get("x-tollgate-translation"));
    });
  }
}

test("the cases include a lowered limit, a lossy translation and a route that cannot carry the request", async () => {
  const told = async (account: string, protocol: Protocol, fields: Fields, options: AskOptions = {}) => {
    const path = `/v1/explain?protocol=${protocol}`;
    const reply = await ask(here, protocol, accountOf(account).key, fields, { ...options, path });
    return (await reply.json()) as Explanation;
  };
  await here.store.credit(accountOf("part, chat").tag, { id: "again", amount: PART, kind: "topup", note: "" });
  assert.match((await told("part, chat", "chat", {})).clamped, /^max_tokens=\d+$/);
  const kept = await told("kept part", "responses", { ...KEPT, max_output_tokens: undefined });
  assert.match(kept.clamped, /^max_output_tokens=\d\d\d\d$/);
  const lossy = await told("rich", "chat", { model: "messages-1", seed: 7 });
  assert.deepEqual(lossy.routes[0].dropped, ["seed"]);
  assert.equal(lossy.routes[0].upstream, undefined, "names of upstreams are not shown to owners");
  const blind = await told("rich", "messages", { model: "blind", ...IMAGE_TURN.messages });
  assert.equal(blind.expected.status, 400);
  assert.equal(blind.routes[0].carries, false);
  assert.equal(blind.steps.at(-1).ok, false);
});

test("an exhausted limit is reported with the same time to wait as for a request, and asking does not count", async () => {
  const limited = await here.account({ group: "limited-money" });
  const body = JSON.stringify(bodyOf("chat", {}));
  const explain = async () => {
    const reply = await ask(here, "chat", limited.key, {}, { path: "/v1/explain?protocol=chat", raw: body });
    return (await reply.json()) as Explanation;
  };
  const send = async () => {
    const reply = await ask(here, "chat", limited.key, {}, { raw: body });
    await reply.text();
    return reply;
  };
  for (let i = 0; i < 5; i++) assert.equal((await explain()).expected.status, 200);
  for (let i = 0; i < 2; i++) assert.equal((await send()).status, 200);
  const toldMs = performance.now();
  const told = await explain();
  const refused = await send();
  const apartS = Math.ceil((performance.now() - toldMs) / 1_000);
  assert.deepEqual([told.expected.status, told.expected.cause, refused.status], [429, "requests", 429]);
  // Both read the same bucket, one after the other.
  const waits = [told.expected.retry_after_s, Number(refused.headers.get("retry-after"))] as [number, number];
  assert.ok(waits[0] >= waits[1] && waits[0] - waits[1] <= apartS, waits.join(" "));
  assert.deepEqual([told.limits.requests.remaining, told.limits.requests_per_minute], [0, 2]);
  assert.equal(told.steps.find(({ step }: Explanation) => step === "limits").ok, false);
});

test("an operator is told that the account is suspended or closed although the key is not", async () => {
  for (const [name, cause] of [
    ["suspended account", "suspended"],
    ["closed account", "revoked_key"],
    ["rich", undefined],
  ] as const) {
    const { keyId } = accountOf(name);
    const reply = await fetch(`${here.adminUrl}/admin/v1/explain`, {
      method: "POST",
      headers: { authorization: `Bearer ${here.gateway.adminToken}`, "content-type": "application/json" },
      body: JSON.stringify({ key_id: keyId, model: "chat-1", protocol: "chat" }),
    });
    const told = (await reply.json()) as Explanation;
    assert.equal(told.expected?.cause ?? undefined, cause, JSON.stringify(told));
  }
});

test("the path of decisions ends with the refusal", async () => {
  const body = bodyOf("chat", {});
  const explain = async (account: string, raw: object, query = "") => {
    const path = `/v1/explain${query}`;
    const reply = await ask(here, "chat", accountOf(account).key, {}, { path, raw: JSON.stringify(raw) });
    return { status: reply.status, ...((await reply.json()) as Explanation) };
  };
  const good = await explain("rich", { protocol: "chat", request: body });
  assert.deepEqual(
    good.steps.map(({ step, ok }: Explanation) => `${step} ${ok}`),
    [
      "gateway true",
      "key true",
      "body true",
      "model true",
      "price true",
      "plan true",
      "group true",
      "funds true",
      "limits true",
      "routes true",
    ],
  );
  assert.equal(good.limits.checked, true);
  // 80 bytes of text are 27 tokens at 2,000 nano-dollars (a one-hour cache write), and 400 of output at 10,000.
  const inputTokens = Math.ceil(Buffer.byteLength(JSON.stringify(body)) / 3);
  assert.equal(good.price.input_tokens_max, inputTokens);
  assert.equal(Number(good.price.worst_usd), (inputTokens * 2_000 + 400 * 10_000) / 1e9);
  const poor = await explain("poor", body);
  const at = poor.steps.findIndex(({ ok }: Explanation) => ok === false);
  assert.equal(poor.steps[at].step, "funds");
  assert.ok(poor.steps.slice(at + 1).every(({ ok }: Explanation) => ok === null));
  assert.equal(poor.routes.length, 1, "routes are shown even if the funds do not suffice");

  assert.equal((await explain("rich", { model: "responses-1", input: "hi" })).protocol, "responses");
  assert.equal((await explain("rich", { ...body, system: "be brief" })).protocol, "messages");
  assert.equal((await explain("rich", body, "?protocol=smtp")).error.param, "protocol");
  assert.equal((await explain("rich", { protocol: "smtp", request: body })).error.cause, "wrong_type");
});
