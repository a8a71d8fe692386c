/**
 * Clients read a 404 in answer to a request as one about its model. So if the server that should have kept what a request refers to
 * does not know it, the client gets a 400 that names the reference (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { noCompaction } from "../../../src/convert/responses/compact.ts";
import type { AttemptRecord } from "../../../src/dispatch/ask.ts";
import { refusedBesideStored } from "../../../src/request/references.ts";
import { refusal } from "../../../src/values/errors.ts";

const NEEDED = { upstream: "here", model: "m", id: "resp_own" };
const STORED = { names: new Map([["resp_tg_client", NEEDED]]), needed: NEEDED, ranAt: undefined };

function attempt(status: number): AttemptRecord {
  return {
    ...{ upstream: "here", model: "m", outcome: "upstream_unavailable", status, reason: "", startedAtMs: 0 },
    ...{ endedAtMs: 1, bytesReceived: 1, sentToUpstream: true, refusedByUpstream: true },
  };
}

for (const [status, json, cause, param] of [
  [404, { previous_response_id: "resp_tg_client" }, "unsupported_parameter", "previous_response_id"],
  [404, { input: [{ type: "item_reference", id: "msg_tg_client" }] }, "unsupported_parameter", "input"],
  [500, { previous_response_id: "resp_tg_client" }, "upstream_unavailable", undefined],
] as const) {
  test(`status ${status} of a server, for ${Object.keys(json)[0]}: ${cause}`, () => {
    const refused = refusedBesideStored(refusal("upstream_unavailable"), [attempt(status)], { json, stored: STORED });
    assert.deepEqual([refused.cause, refused.facts.param], [cause, param]);
    assert.match(refused.facts.detail ?? "", /server/);
  });
}

test("a server that has no such endpoint (405) is reported as that, not as the only one that keeps the data", () => {
  const json = { previous_response_id: "resp_tg_client" };
  const refused = refusedBesideStored(noCompaction(), [attempt(405)], { json, stored: STORED });
  assert.deepEqual(refused, noCompaction());
});
