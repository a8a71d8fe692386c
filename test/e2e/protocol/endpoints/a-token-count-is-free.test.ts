/**
 * Counting tokens is authenticated and checked against the catalog, but never charged, and not subject to limits or
 * funds. Claude Code sends 25 counts at once.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount, testConfig } from "../../../rig/gateway.ts";
import { assertAtRest, errorOf, usageLines } from "../whole/asking.ts";
import { anthropicOf, openaiOf, post } from "./side-rig.ts";

const HELLO = [{ role: "user" as const, content: "hello" }];

let here: GatewayHere;
let account: TestAccount;

before(async () => {
  here = await startGatewayHere({
    config: (places) =>
      testConfig(places, {
        groups: { "limited-money": { limits: { requests_per_minute: 1, tokens_per_minute: undefined } } },
      }),
  });
  account = await here.account();
});
after(() => here.close());

test("Anthropic's SDK gets the upstream's own count", async () => {
  here.simulator.program({ usage: { input: 1234 } }, { when: (seen) => seen.path.endsWith("/count_tokens") });
  const counted = await anthropicOf(here, account.key).messages.countTokens({ model: "messages-1", messages: HELLO });
  assert.equal(counted.input_tokens, 1234);
  assert.equal(here.simulator.requests.at(-1)?.path, "/v1/messages/count_tokens");
});

test("OpenAI's SDK gets the upstream's own count, requested under the upstream's model name", async () => {
  here.simulator.program({ usage: { input: 77 } }, { when: (seen) => seen.path.endsWith("/input_tokens") });
  const counted = await openaiOf(here, account.key).responses.inputTokens.count({
    model: "responses-alias",
    input: "hello",
  });
  assert.deepEqual(counted, { object: "response.input_tokens", input_tokens: 77 });
  assert.deepEqual(here.simulator.requests.at(-1)?.json, { model: "responses-1-2026-08", input: "hello" });
});

for (const [path, fields] of [
  ["/v1/messages/count_tokens", { messages: HELLO }],
  ["/v1/responses/input_tokens", { input: "hello" }],
] as const) {
  test(`${path}: a model whose server speaks another protocol is estimated without calling the server`, async () => {
    const before = here.simulator.count;
    const reply = await post(here.url + path, account.key, { model: "chat-1", ...fields });
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get("x-tollgate-origin"), "gateway");
    const { input_tokens } = (await reply.json()) as { input_tokens: number };
    assert.ok(input_tokens >= 1 && input_tokens <= 20, `${input_tokens}`);
    assert.equal(here.simulator.count, before);
  });

  test(`${path}: refusals have the same order as on the model path, as far as they apply to a count`, async () => {
    const ask = (key: string, body: object) => post(`${here.url}${path}?beta=true`, key, body);
    const wants = async (reply: Response, status: number, cause: string) => {
      assert.equal(reply.status, status);
      assert.equal((await errorOf(reply)).cause, cause);
    };
    const unknown = await here.account();
    await here.store.revokeKey(unknown.tag, unknown.keyId);
    await wants(await ask(unknown.key, {}), 401, "revoked_key");
    await wants(await ask(account.key, { ...fields }), 400, "missing_field");
    await wants(await ask(account.key, { model: "no-such", ...fields }), 404, "unknown_model");
    await wants(await ask(account.key, { model: "pro-only", ...fields }), 404, "not_in_plan");
    await wants(await ask(account.key, { model: "other-family", ...fields }), 403, "group_mismatch");
  });
}

test("stored state at the upstream cannot be counted, as it cannot be used", async () => {
  const body = { model: "responses-1", input: "hello", previous_response_id: "resp_1" };
  const reply = await post(`${here.url}/v1/responses/input_tokens`, account.key, body);
  assert.equal(reply.status, 400);
  assert.equal((await errorOf(reply)).param, "previous_response_id");
});

test("a time-card key whose card has not been redeemed may count", async () => {
  const { key } = await here.account({ usd: "0", group: "cards" });
  const reply = await post(`${here.url}/v1/messages/count_tokens`, key, { model: "messages-1", messages: HELLO });
  assert.equal(reply.status, 200);
});

test("25 concurrent counts without funds and with a limit of 1 per minute are all answered, and leave no trace in the account", async () => {
  const poor = await here.account({ usd: "0", group: "limited-money" });
  const client = anthropicOf(here, poor.key);
  const counts = await Promise.all(
    Array.from({ length: 25 }, (_, index) =>
      client.messages.countTokens({ model: "messages-1", messages: [{ role: "user", content: `hello ${index}` }] }),
    ),
  );
  assert.ok(counts.every((one) => one.input_tokens > 0));
  assert.deepEqual(await usageLines(here, poor), []);
  await assertAtRest(here, poor);
  const state = await here.store.inspect(poor.tag);
  assert.equal(state?.account.balance, 0n);
});

test("a count is logged and in the metrics, as its own kind and without a charge", async () => {
  const reply = await post(`${here.url}/v1/messages/count_tokens`, account.key, {
    model: "chat-1",
    messages: HELLO,
  });
  await reply.text();
  const line = await here.requestEnd(reply.headers.get("x-request-id") as string);
  assert.equal(line.protocol, "side");
  assert.equal(line.endpoint, "count_tokens");
  assert.equal(line.status, 200);
  assert.equal(line.model, "chat-1");
  assert.equal(line.charged_nano_usd, undefined);
  const { body } = await here.gateway.metrics.page();
  assert.match(
    body,
    /tollgate_requests_total\{protocol="side",model="chat-1",group="money",status="200",cause="none"\} [1-9]/,
  );
});
