/**
 * A compaction may have the same body as a response. An idempotency key names one request, so one that was used for the
 * first path is refused at the second: its client would take the answer to another question for its own.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { errorOf, usageLines } from "../whole/asking.ts";
import { post, sendJson, startUpstream } from "./side-rig.ts";

const COMPACTION = {
  ...{ id: "resp_1", object: "response.compaction", created_at: 1_790_000_000 },
  output: [{ type: "compaction", id: "cmp_1", encrypted_content: "c2VjcmV0" }],
  usage: { input_tokens: 1_000, output_tokens: 200, total_tokens: 1_200 },
};
const BODY = { model: "responses-alias", input: [{ role: "user", content: "hello" }] };

test("a key that a compaction has used is refused for a response with the same body", async (t) => {
  const upstream = await startUpstream((_, res) => sendJson(res, 200, COMPACTION));
  t.after(() => upstream.close());
  const here = await startGatewayHere({ config: ({ dir }) => testConfig({ upstreamUrl: upstream.url, dir }) });
  t.after(() => here.close());
  here.gateway.reload({ ...here.settings, idempotency: { enabled: true, keepMs: 86_400_000 } });
  const account = await here.account();
  const ask = (path: string) => post(here.url + path, account.key, BODY, { "idempotency-key": "order-1" });
  const first = await ask("/v1/responses/compact");
  assert.equal(first.status, 200);
  await first.arrayBuffer();
  const other = await errorOf(await ask("/v1/responses"));
  assert.equal(other.cause, "idempotency_key");
  assert.ok(other.message.includes(first.headers.get("x-request-id") as string), other.message);
  const repeated = await errorOf(await ask("/v1/responses/compact"));
  assert.equal(repeated.cause, "idempotency_finished");
  assert.equal(upstream.seen.length, 1);
  assert.equal((await usageLines(here, account)).length, 1);
});
