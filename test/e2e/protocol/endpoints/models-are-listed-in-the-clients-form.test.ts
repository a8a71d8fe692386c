/** `GET /v1/models`: one catalog, in the form that the client reads. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { errorOf } from "../whole/asking.ts";
import { anthropicOf, get, openaiOf } from "./side-rig.ts";

const ODD = "vendor/odd:1";
const MONEY = ["chat-1", "messages-1", "responses-1", "chat-alias", "messages-alias", "responses-alias"];
const ANTHROPIC = { "anthropic-version": "2023-06-01" };

let here: GatewayHere;
let account: TestAccount;

function config(places: ConfigPlaces): string {
  return testConfig(places, {
    models: {
      [ODD]: {
        plans: ["free"],
        price: { input: "1", output: "1" },
        context_tokens: 1000,
        routes: [{ upstream: "up-chat" }],
      },
    },
    groups: { odd: { kind: "pay_per_use", models: ["vendor/*"] } },
  });
}

before(async () => {
  here = await startGatewayHere({ config });
  account = await here.account({ usd: "0" });
});
after(() => here.close());

test("OpenAI's SDK lists what the key's group serves and its plans include, without funds", async () => {
  const ids: string[] = [];
  for await (const model of openaiOf(here, account.key).models.list()) ids.push(model.id);
  assert.deepEqual(ids, MONEY);
});

test("OpenAI's SDK reads one model", async () => {
  const model = await openaiOf(here, account.key).models.retrieve("chat-1");
  assert.deepEqual(model, { id: "chat-1", object: "model", created: 0, owned_by: "tollgate" });
});

test("Anthropic's SDK lists through its pages and reads one model", async () => {
  const client = anthropicOf(here, account.key);
  const ids: string[] = [];
  for await (const model of client.models.list({ limit: 4 })) ids.push(model.id);
  assert.deepEqual(ids, MONEY);
  const model = await client.models.retrieve("messages-1");
  assert.equal(model.type, "model");
  assert.equal(model.max_input_tokens, 200_000);
  assert.equal(model.max_tokens, 32_000);
  assert.ok(!Number.isNaN(Date.parse(model.created_at)));
});

interface Page {
  readonly data: { readonly id: string }[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

async function page(query: string): Promise<Page> {
  const reply = await get(`${here.url}/v1/models?${query}`, account.key, ANTHROPIC);
  assert.equal(reply.status, 200);
  return (await reply.json()) as Page;
}

test("pages go forward and backward, and end", async () => {
  const idsOf = (one: Page) => one.data.map((model) => model.id);
  const first = await page("limit=2");
  assert.deepEqual(
    [idsOf(first), first.has_more, first.first_id, first.last_id],
    [MONEY.slice(0, 2), true, MONEY[0], MONEY[1]],
  );
  const last = await page(`limit=4&after_id=${first.last_id}`);
  assert.deepEqual([idsOf(last), last.has_more], [MONEY.slice(2), false]);
  const back = await page(`limit=3&before_id=${last.last_id}`);
  assert.deepEqual([idsOf(back), back.has_more], [MONEY.slice(2, 5), true]);
  const start = await page(`limit=3&before_id=${back.first_id}`);
  assert.deepEqual([idsOf(start), start.has_more], [MONEY.slice(0, 2), false]);
});

for (const [query, param] of [
  ["limit=0", "limit"],
  ["limit=1001", "limit"],
  ["limit=many", "limit"],
  ["after_id=gone", "after_id"],
  ["before_id=gone", "before_id"],
] as const) {
  test(`a query of ${query} is refused in the client's own form`, async () => {
    const reply = await get(`${here.url}/v1/models?${query}`, account.key, ANTHROPIC);
    assert.equal(reply.status, 400);
    assert.equal(reply.headers.get("request-id"), reply.headers.get("x-request-id"));
    const body = (await reply.json()) as { type: string; error: { type: string; message: string } };
    assert.equal(body.type, "error");
    assert.equal(body.error.type, "invalid_request_error");
    assert.ok(body.error.message.includes(param));
  });
}

test("a beta query parameter and the limit that Claude Code sends for discovery are accepted", async () => {
  assert.equal((await page("beta=true&limit=1000")).data.length, MONEY.length);
});

test("Codex's request for its own list gets a plain 404, after which it uses its built-in list", async () => {
  const reply = await get(`${here.url}/v1/models?client_version=0.169.0`, account.key);
  assert.equal(reply.status, 404);
  assert.equal((await errorOf(reply)).cause, "unknown_path");
});

test("a name with a slash and a colon is found by its encoded form", async () => {
  const { key } = await here.account({ group: "odd" });
  const reply = await get(`${here.url}/v1/models/${encodeURIComponent(ODD)}`, key);
  assert.equal(reply.status, 200);
  assert.equal(((await reply.json()) as { id: string }).id, ODD);
  assert.equal((await openaiOf(here, key).models.retrieve(ODD)).id, ODD);
});

for (const [what, name] of [
  ["unknown", "no-such"],
  ["of another group", "other-family"],
  ["of another plan", "pro-only"],
] as const) {
  test(`a model ${what} is model_not_found in both forms`, async () => {
    const openai = await get(`${here.url}/v1/models/${name}`, account.key);
    assert.equal(openai.status, 404);
    assert.equal((await errorOf(openai)).code, "model_not_found");
    const anthropic = await get(`${here.url}/v1/models/${name}`, account.key, ANTHROPIC);
    assert.equal(anthropic.status, 404);
    assert.equal(((await anthropic.json()) as { type: string }).type, "error");
  });
}

test("a bad key is refused before anything is listed", async () => {
  const reply = await get(`${here.url}/v1/models`, `${account.key.slice(0, -1)}_`);
  assert.equal(reply.status, 401);
});

test("HEAD is answered without a key on the model paths and on the site, and with one on the list", async () => {
  for (const path of [
    "/v1/messages",
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/messages?beta=true",
    "/",
    "/api/hello",
  ]) {
    assert.equal((await fetch(here.url + path, { method: "HEAD" })).status, 200, path);
  }
  const headers = { authorization: `Bearer ${account.key}` };
  assert.equal((await fetch(`${here.url}/v1/models`, { method: "HEAD", headers })).status, 200);
});
