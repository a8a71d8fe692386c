/** What the operator's account at a vendor may use is no fault of a request, whichever status the vendor answers with. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { answerOf } from "../../../src/values/errors.ts";
import { ask, httpServer, refusalIn, rig, route, upstream } from "./rig.ts";

/** An upstream that refuses every request in this way, and what becomes of one request. */
async function refusedWith(t: TestContext, status: number, error: object, headers: Record<string, string> = {}) {
  const base = await httpServer(t, (_request, response) => {
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify({ error: { message: "no", ...error } }));
  });
  const { dispatcher } = rig(t, [upstream("east", base)]);
  const result = await dispatcher.run(ask([route("east")], { stream: false }));
  return { refusal: refusalIn(result), report: dispatcher.report()[0] };
}

for (const status of [400, 402, 403, 404, 429]) {
  test(`an exhausted quota is the operator's concern with status ${status}`, async (t) => {
    const { refusal, report } = await refusedWith(t, status, { code: "insufficient_quota", message: "Add credits." });
    assert.equal(refusal.cause, "upstream_forbidden");
    assert.equal(refusal.upstreamMessage, undefined, "the client does not read about the account");
    assert.equal(report?.reason, "forbidden");
  });
}

const DETAILS: readonly (readonly [status: number, errorCode: string])[] = [
  [400, "organization_on_hold"],
  [400, "cmek_key_disabled"],
  [400, "cmek_key_network_blocked"],
  [400, "claude_code_key_creator_not_member"],
  [429, "contract_spend_limit_reached"],
  [429, "enforced_spend_limit_reached"],
];

for (const [status, error_code] of DETAILS) {
  test(`a ${status} with the details ${error_code} is the operator's concern`, async (t) => {
    const { refusal } = await refusedWith(t, status, { type: "invalid_request_error", details: { error_code } });
    assert.deepEqual([refusal.cause, refusal.details], ["upstream_forbidden", undefined]);
  });
}

test("a request that alone exceeds what the account may use gets the vendor's retry-after and pauses nothing", async (t) => {
  const message =
    "Request too large for model-1 in organization org-1 on tokens per min (TPM): Limit 1000, Requested 9000.";
  const { refusal, report } = await refusedWith(t, 429, { message }, { "retry-after": "7" });
  assert.equal(refusal.cause, "upstream_rate_limit");
  assert.equal(answerOf(refusal).retryAfterS, 7);
  assert.equal(report?.limitedModels.size, 0);
});
