/**
 * A server's messages about stored responses are passed on with the ids that the client knows, wherever they are in the
 * message.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { AttemptRecord } from "../../../src/dispatch/ask.ts";
import { refusedBesideStored } from "../../../src/request/references.ts";
import { refusal } from "../../../src/values/errors.ts";

const WRAPPED = "resp_tg_client";
// An id that contains a replacement pattern of String.replace.
const OTHER = "resp_$&_client";
const KEPT = { upstream: "here", model: "m", id: "resp_own" };
const OF_ANOTHER = { upstream: "here", model: "m", id: "msg_own" };
const STORED = {
  names: new Map([
    [WRAPPED, KEPT],
    [OTHER, OF_ANOTHER],
    ["resp_tg_foreign", undefined],
  ]),
  needed: KEPT,
  ranAt: undefined,
};
const ATTEMPT: AttemptRecord = {
  upstream: "here",
  model: "m",
  outcome: "upstream_rejected",
  status: 400,
  reason: "",
  startedAtMs: 0,
  endedAtMs: 1,
  bytesReceived: 1,
  sentToUpstream: true,
  refusedByUpstream: true,
};

test("each id of the server is replaced by the client's, however often it is named", () => {
  const said = refusal("upstream_rejected", {}, { upstreamMessage: "resp_own is not msg_own; resp_own has gone" });
  const translated = refusedBesideStored(said, [ATTEMPT], { json: {}, stored: STORED });
  assert.equal(translated.upstreamMessage, `${WRAPPED} is not ${OTHER}; ${WRAPPED} has gone`);
});

test("the refusal of a request that needs no stored response is unchanged", () => {
  const said = refusal("upstream_rejected", {}, { upstreamMessage: "resp_own has gone" });
  for (const stored of [undefined, { ...STORED, needed: undefined }])
    assert.equal(refusedBesideStored(said, [ATTEMPT], { json: {}, stored }), said);
});
