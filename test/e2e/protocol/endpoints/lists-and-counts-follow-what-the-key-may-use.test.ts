/** Lists of models and counts follow the key's group, limits, plan and cards as a request would, apart from funds. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { limitsText } from "../../../../src/store/limits/limits.ts";
import {
  type ConfigPlaces,
  type GatewayHere,
  startGatewayHere,
  type TestAccount,
  testConfig,
} from "../../../rig/gateway.ts";
import { errorOf } from "../whole/asking.ts";
import { get, post } from "./side-rig.ts";

let here: GatewayHere;
before(async () => {
  const models = ["*"];
  const groups = {
    "other-cards": { kind: "time_card", models },
    "cards-or-money": { kind: "time_card", models, fallback: "money" },
  } as const;
  here = await startGatewayHere({ config: (places: ConfigPlaces) => testConfig(places, { groups }) });
});
after(() => here.close());

async function listed({ key }: TestAccount): Promise<string[]> {
  const { data } = (await (await get(`${here.url}/v1/models`, key)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

/** Status and cause of a count for a model of the plan `pro`, which is on a chat server and therefore estimated. */
async function counted({ key }: TestAccount, model = "pro-only"): Promise<string> {
  const body = { model, messages: [{ role: "user", content: "hello" }] };
  const reply = await post(`${here.url}/v1/messages/count_tokens`, key, body);
  return reply.ok ? "200" : `${reply.status} ${(await errorOf(reply)).cause}`;
}

test("plans of cards that exist for the key's own group are listed, and of no other group", async () => {
  const account = await here.account({ group: "other-cards" });
  const ids = await listed(account);
  assert.ok(ids.includes("chat-1"));
  assert.ok(!ids.includes("pro-only"), "the card of this key is for the group `cards`");
});

test("the plan of a running card applies to each key of the account", async () => {
  const account = await here.account();
  assert.ok(!(await listed(account)).includes("pro-only"));
  assert.equal(await counted(account), "404 not_in_plan");
  const card = { card: "day", plan: "pro", group: "cards", lastsMs: 86_400_000, quota: undefined };
  await here.store.grant(account.tag, { ...card, id: "card", reference: "card", afterPrevious: false });
  assert.ok((await listed(account)).includes("pro-only"));
  assert.equal(await counted(account), "200");
});

test("a key without a card is not refused for its plan, unless it pays with money instead", async () => {
  assert.equal(await counted(await here.account({ group: "other-cards" })), "200");
  assert.equal(await counted(await here.account({ group: "cards-or-money" })), "404 not_in_plan");
});

test("a key's own limits apply", async () => {
  const account = await here.account();
  await here.store.changeKey(account.tag, account.keyId, { limits: limitsText({ models: ["chat-1"] }) });
  assert.deepEqual(await listed(account), ["chat-1"]);
  assert.equal(await counted(account, "chat-1"), "200");
  assert.equal(await counted(account, "messages-1"), "403 model_not_allowed");
});

test("the header that selects the form of the list does not change other endpoints' answers", async () => {
  const headers = { "anthropic-version": "2023-06-01" };
  const shapes = await Promise.all(
    ["/v1/models", "/v1/usage", "/v1/responses/resp_1"].map(async (path) => {
      const { type } = (await (await get(here.url + path, "sk-none", headers)).json()) as { type?: string };
      return type;
    }),
  );
  assert.deepEqual(shapes, ["error", undefined, undefined], "the outer member of an error in the messages protocol");
});
