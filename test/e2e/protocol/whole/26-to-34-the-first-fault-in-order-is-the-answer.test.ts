/**
 * The order of docs/errors.md: a request with two neighboring faults gets the answer of the first.
 * docs/failure-model.md rows 26 to 29, 32 to 34 and 56, invariant 20.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { KeyChange } from "../../../../src/store/records.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { type AskOptions, ask, assertAtRest, errorOf, type Fields, PROTOCOL_LIST } from "./asking.ts";

let here: GatewayHere;
let rich: TestAccount;
let poor: TestAccount;
let carded: TestAccount;
before(async () => {
  here = await startGatewayHere();
  rich = await here.account();
  poor = await here.account({ usd: "0" });
  carded = await here.account({ group: "cards" });
});
after(() => here.close());

const UNKNOWN_KEY = `sk-${"a".repeat(48)}`;

async function causeOf(
  protocol: Protocol,
  key: string | undefined,
  fields: Fields = {},
  options: AskOptions = {},
): Promise<string> {
  const reply = await ask(here, protocol, key, fields, options);
  const { cause } = await errorOf(reply);
  return `${reply.status} ${cause}`;
}

for (const protocol of PROTOCOL_LIST) {
  test(`${protocol}: for each pair of neighboring faults the first one is the answer`, async () => {
    const badBody = { raw: '{"model":"nothing' };
    const noModel = { model: "no-such-model" };
    const path = (name: string) => ({ path: `/v1/${name}` });
    // 1 before 2: an address that does not exist, without a key.
    assert.equal(await causeOf(protocol, undefined, {}, path("nowhere")), "404 unknown_path");
    // 2 before 3: malformed, and unknown.
    assert.equal(await causeOf(protocol, "sk-short"), "401 malformed_key");
    assert.equal(await causeOf(protocol, undefined), "401 missing_key");
    // 3 before 4: with a bad key and a bad body, the answer is about the key.
    assert.equal(await causeOf(protocol, UNKNOWN_KEY, {}, badBody), "401 unknown_key");
    assert.equal(
      await causeOf(protocol, UNKNOWN_KEY, {}, { headers: { "content-type": "text/plain" } }),
      "401 unknown_key",
    );
    // 4 before 5: an invalid body that names a model that does not exist.
    assert.equal(await causeOf(protocol, rich.key, { ...noModel, stream: "yes" }), "400 wrong_type");
    // 4 before 7: a fault of the body comes before the empty balance.
    assert.equal(await causeOf(protocol, poor.key, {}, badBody), "400 not_json");
    // 5 before 6 and 7: unknown, or not in the plan, before group and balance.
    assert.equal(await causeOf(protocol, poor.key, noModel), "404 unknown_model");
    assert.equal(await causeOf(protocol, poor.key, { model: "pro-only" }), "404 not_in_plan");
    // 6 before 7: a group that does not serve the model, and no funds.
    assert.equal(await causeOf(protocol, poor.key, { model: "other-family" }), "403 group_mismatch");
    assert.equal(await causeOf(protocol, poor.key), "403 insufficient_balance");
    assert.equal(await causeOf(protocol, carded.key), "403 no_entitlement");
    assert.equal(await causeOf(protocol, carded.key, { model: "other-family" }), "403 group_mismatch");
    for (const account of [rich, poor, carded]) await assertAtRest(here, account);
  });

  test(`${protocol}: row 34, 7 before 8: an empty balance is reported before a rate limit, and does not count toward it`, async () => {
    const limited = await here.account({ usd: "0", group: "limited-money" });
    for (let i = 0; i < 4; i++) assert.equal(await causeOf(protocol, limited.key), "403 insufficient_balance");
    await assertAtRest(here, limited);
  });

  test(`${protocol}: 8 before 9: a rate limit is reported before members that no route can carry`, async () => {
    const limited = await here.account({ group: "limited-money" });
    const stateful = protocol === "responses" ? { previous_response_id: "resp_1" } : { tools: [{ file_id: "f" }] };
    assert.equal(await causeOf(protocol, limited.key, stateful), "400 unsupported_parameter");
    assert.equal(await causeOf(protocol, limited.key, stateful), "400 unsupported_parameter");
    assert.equal(await causeOf(protocol, limited.key, stateful), "429 requests");
    await assertAtRest(here, limited);
  });

  test(`${protocol}: row 29, a revoked key is refused from the next request on`, async () => {
    const account = await here.account();
    assert.equal((await ask(here, protocol, account.key)).status, 200);
    await here.store.revokeKey(account.tag, account.keyId);
    assert.equal(await causeOf(protocol, account.key), "401 revoked_key");
    assert.equal(await causeOf(protocol, account.key, {}, { raw: "{" }), "401 revoked_key");
    await assertAtRest(here, account);
  });

  test(`${protocol}: a suspended or expired key is refused, and works as soon as it is valid again`, async () => {
    const account = await here.account();
    const change = (to: KeyChange) => here.store.changeKey(account.tag, account.keyId, to);
    for (const [bad, good, cause] of [
      [{ status: "suspended" }, { status: "normal" }, "suspended"],
      [{ expiresAtMs: Date.now() - 1 }, { expiresAtMs: "never" }, "expired_key"],
    ] as const) {
      await change(bad);
      assert.equal(await causeOf(protocol, account.key), `401 ${cause}`);
      assert.equal(
        await causeOf(protocol, account.key, {}, { raw: "{" }),
        `401 ${cause}`,
        "the key is checked before the body",
      );
      await change(good);
      assert.equal((await ask(here, protocol, account.key)).status, 200);
    }
    await assertAtRest(here, account);
  });

  test(`${protocol}: row 33, a model name must match the catalog byte for byte`, async () => {
    const names = [`${protocol}-1 `, `${protocol}-1`.toUpperCase(), "__proto__", "constructor", "toString", "../x"];
    for (const model of [...names, "x".repeat(1_000_000)]) {
      const reply = await ask(here, protocol, rich.key, { model });
      const { cause, message } = await errorOf(reply);
      assert.deepEqual([reply.status, cause], [404, "unknown_model"], model.slice(0, 40));
      assert.ok(
        message.includes(`"${model.slice(0, 100)}`) && message.length < 600,
        "the message quotes the model, cut to 100 characters",
      );
      assert.ok(message.includes('Group: "money"'));
    }
    for (const model of [["chat-1"], null, 7, {}, true, ""]) {
      assert.equal(await causeOf(protocol, rich.key, { model }), "400 wrong_type", JSON.stringify(model));
    }
    assert.equal(await causeOf(protocol, rich.key, { model: undefined }), "400 missing_field");
    await assertAtRest(here, rich);
  });
}

test("row 56: a body for another protocol's path is 400 and names the member", async () => {
  const turns = [{ role: "user", content: "hi" }];
  const cases: [Protocol, Fields, string][] = [
    ["messages", { model: "messages-1", messages: turns }, "missing_field max_tokens"],
    [
      "messages",
      { model: "messages-1", messages: turns, max_completion_tokens: 5 },
      "wrong_protocol max_completion_tokens",
    ],
    ["chat", { model: "chat-1", input: "hi" }, "wrong_protocol input"],
    ["responses", { model: "responses-1", messages: turns }, "wrong_protocol messages"],
    ["chat", { model: "chat-1" }, "missing_field messages"],
    ["responses", { model: "responses-1" }, "missing_field input"],
  ];
  for (const [protocol, body, expected] of cases) {
    const reply = await ask(here, protocol, rich.key, {}, { raw: JSON.stringify(body) });
    const { cause, param, message } = await errorOf(reply);
    const named = protocol === "messages" ? message.split(":")[0] : param;
    assert.deepEqual([reply.status, `${cause} ${named}`], [400, expected]);
  }
});

test("row 56: members by which other gateways route have no meaning here", async () => {
  const foreign = {
    api_base: "http://evil",
    base_url: "http://evil",
    api_key: "sk-x",
    user_config: {},
    mock_response: "x",
  };
  for (const protocol of PROTOCOL_LIST) {
    const reply = await ask(here, protocol, rich.key, { ...foreign, metadata: { api_base: "http://evil" } });
    assert.equal(reply.status, 200);
    assert.doesNotMatch(await reply.text(), /^x$/);
    await assertAtRest(here, rich);
  }
});
