/** `GET /v1/models`: both forms, filtered by the key's group and plans, paged as the SDKs page. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { errorOf } from "./asking.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

const ANTHROPIC = { "anthropic-version": "2023-06-01" };
const FREE = ["chat-1", "messages-1", "responses-1", "chat-alias", "messages-alias", "responses-alias"];

function get(path: string, { key }: Pick<TestAccount, "key">, headers = {}): Promise<Response> {
  return fetch(here.url + path, { headers: { authorization: `Bearer ${key}`, ...headers } });
}

interface Page {
  readonly data: { id: string; type?: string; object?: string; display_name?: string }[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

const pageOf = async (path: string, account: TestAccount) =>
  (await (await get(path, account, ANTHROPIC)).json()) as Page;
const idsOf = async (account: TestAccount) =>
  ((await (await get("/v1/models", account)).json()) as Page).data.map(({ id }) => id).sort();

test("the list has the models that both group and plan allow", async () => {
  assert.deepEqual(await idsOf(await here.account()), [...FREE].sort());
  assert.deepEqual(await idsOf(await here.account({ plan: "pro" })), [...FREE, "pro-only"].sort());
  assert.deepEqual(await idsOf(await here.account({ group: "double-money" })), ["chat-1", "chat-alias"]);
  assert.deepEqual(await idsOf(await here.account({ usd: "0" })), [...FREE].sort(), "funds do not matter here");
  // What would be usable with a running card is listed too.
  assert.deepEqual(await idsOf(await here.account({ group: "cards" })), [...FREE].sort());
});

test("a key's new group applies from the next list on, and a revoked key gets no list", async () => {
  const account = await here.account();
  await here.store.changeKey(account.tag, account.keyId, { group: "double-money" });
  assert.deepEqual(await idsOf(account), ["chat-1", "chat-alias"]);
  await here.store.revokeKey(account.tag, account.keyId);
  const reply = await get("/v1/models", account);
  assert.deepEqual([reply.status, (await errorOf(reply)).cause], [401, "revoked_key"]);
});

test("each SDK's form is recognized by its version header", async () => {
  const account = await here.account();
  const openai = (await (await get("/v1/models", account)).json()) as { object: string } & Page;
  assert.equal(openai.object, "list");
  for (const model of openai.data) assert.deepEqual(Object.keys(model), ["id", "object", "created", "owned_by"]);
  const page = await pageOf("/v1/models", account);
  assert.deepEqual([page.has_more, page.first_id, page.last_id], [false, page.data[0]?.id, page.data.at(-1)?.id]);
  for (const model of page.data) assert.equal(model.type, "model");
});

test("pages follow one another in both directions, whatever is requested", async () => {
  const account = await here.account();
  const all = (await pageOf("/v1/models", account)).data.map(({ id }) => id);
  const seen: string[] = [];
  for (let after = ""; ; ) {
    const page = await pageOf(`/v1/models?limit=4${after}`, account);
    seen.push(...page.data.map(({ id }) => id));
    if (!page.has_more) break;
    after = `&after_id=${page.last_id}`;
  }
  assert.deepEqual(seen, all);
  const back = await pageOf(`/v1/models?limit=2&before_id=${all[3]}`, account);
  assert.deepEqual(
    back.data.map(({ id }) => id),
    all.slice(1, 3),
  );
  assert.equal(back.has_more, true);
  for (const odd of ["limit=0", "limit=-1", "limit=x", "limit=99999", "after_id=__proto__"]) {
    const reply = await get(`/v1/models?${odd}`, account, ANTHROPIC);
    assert.deepEqual([reply.status, (await errorOf(reply)).type], [400, "invalid_request_error"], odd);
  }
});

test("one model is shown in both forms; one that the key may not use is 404", async () => {
  const account = await here.account();
  const openai = (await (await get("/v1/models/chat-1", account)).json()) as { id: string; object: string };
  assert.deepEqual([openai.id, openai.object], ["chat-1", "model"]);
  const anthropic = (await (await get("/v1/models/chat-1", account, ANTHROPIC)).json()) as { id: string; type: string };
  assert.deepEqual([anthropic.id, anthropic.type], ["chat-1", "model"]);
  for (const name of ["pro-only", "other-family", "no-such", "__proto__", "CHAT-1"]) {
    const reply = await get(`/v1/models/${name}`, account);
    assert.deepEqual([reply.status, (await errorOf(reply)).cause], [404, "unknown_model"], name);
  }
  assert.equal((await fetch(`${here.url}/v1/models`)).status, 401);
});
