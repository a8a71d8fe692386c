/**
 * `POST /v1/responses/compact` calls a model, so it is admitted, held for and charged like a request, if the model's
 * server speaks the protocol; otherwise the path does not exist.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { errorOf, memoOf, usageLines } from "../whole/asking.ts";
import { assertEnded, type OtherUpstream, openaiOf, post, sendJson, startUpstream } from "./side-rig.ts";

const USAGE = {
  input_tokens: 1_000,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 200,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 1_200,
};
const COMPACTION = {
  id: "resp_1",
  object: "response.compaction",
  created_at: 1_790_000_000,
  output: [
    {
      type: "message",
      id: "msg_1",
      role: "user",
      status: "completed",
      content: [{ type: "input_text", text: "hello" }],
    },
    { type: "compaction", id: "cmp_1", encrypted_content: "c2VjcmV0" },
  ],
  usage: USAGE,
};
const BODY = { model: "responses-alias", input: [{ role: "user", content: "hello" }] };

let here: GatewayHere;
let upstream: OtherUpstream;

before(async () => {
  upstream = await startUpstream((seen, res) => {
    if (seen.json.instructions === "missing") sendJson(res, 404, { error: { message: "no such path" } });
    else if (seen.json.instructions === "not allowed") sendJson(res, 405, { error: { message: "no such method" } });
    else if (seen.json.instructions === "fail") sendJson(res, 500, { error: { message: "no" } });
    else sendJson(res, 200, COMPACTION);
  });
  here = await startGatewayHere({ config: ({ dir }) => testConfig({ upstreamUrl: upstream.url, dir }) });
});
after(async () => {
  await here.close();
  await upstream.close();
});

test("OpenAI's SDK gets the upstream's compaction, and the account is charged by its usage", async () => {
  const account = await here.account();
  const { data, response } = await openaiOf(here, account.key)
    .responses.compact({ model: "responses-alias", input: [{ role: "user", content: "hello" }] })
    .withResponse();
  assert.deepEqual(data, COMPACTION);
  assert.equal(upstream.seen.at(-1)?.path, "/v1/responses/compact");
  // Only the name of the model is changed: this endpoint takes neither a limit nor `store`.
  assert.deepEqual(upstream.seen.at(-1)?.json, { ...BODY, model: "responses-1-2026-08" });
  await assertEnded(here, account, response);
  const [line, ...more] = await usageLines(here, account);
  assert.deepEqual(more, []);
  assert.deepEqual([memoOf(line).input, memoOf(line).output, memoOf(line).counted], [1_000, 200, "upstream"]);
  // 1,000 tokens at 1 USD and 200 at 10 USD per million.
  assert.equal((await here.store.inspect(account.tag))?.account.balance, 10_000_000_000n - 3_000_000n);
});

test("an account whose funds do not cover the longest compaction is refused, because its length cannot be limited", async () => {
  const account = await here.account({ usd: "0.10" }); // 32,000 tokens of output would be 0.32 USD.
  const asked = upstream.seen.length;
  const reply = await post(`${here.url}/v1/responses/compact`, account.key, BODY);
  assert.equal(reply.status, 403);
  assert.equal((await errorOf(reply)).cause, "insufficient_balance");
  assert.equal(upstream.seen.length, asked);
  await assertEnded(here, account, reply);
  assert.deepEqual(await usageLines(here, account), []);
});

for (const [what, fields] of [
  ["whose server speaks another protocol", { model: "chat-1" }],
  ["whose server does not offer it", { instructions: "missing" }],
  ["whose server has the path for something else", { instructions: "not allowed" }],
] as const) {
  test(`a model ${what} has no compaction: 404, without mentioning a model`, async () => {
    const account = await here.account();
    const reply = await post(`${here.url}/v1/responses/compact`, account.key, { ...BODY, ...fields });
    assert.equal(reply.status, 404);
    const { cause, message } = await errorOf(reply);
    assert.equal(cause, "unknown_path");
    assert.doesNotMatch(message, /model/i);
    await assertEnded(here, account, reply);
    assert.deepEqual(await usageLines(here, account), []);
  });
}

for (const [fields, param] of [
  [{ stream: true }, "stream"],
  [{ previous_response_id: "resp_1" }, "previous_response_id"],
] as const) {
  test(`a compaction with ${param} is refused by name`, async () => {
    const account = await here.account();
    const reply = await post(`${here.url}/v1/responses/compact`, account.key, { ...BODY, ...fields });
    assert.equal(reply.status, 400);
    assert.equal((await errorOf(reply)).param, param);
    await assertEnded(here, account, reply);
  });
}

test("a compaction that fails is not charged", async () => {
  const account = await here.account();
  const reply = await post(`${here.url}/v1/responses/compact`, account.key, { ...BODY, instructions: "fail" });
  assert.equal(reply.status, 403);
  assert.equal((await errorOf(reply)).cause, "upstream_unavailable");
  await assertEnded(here, account, reply);
  assert.deepEqual(await usageLines(here, account), []);
});
