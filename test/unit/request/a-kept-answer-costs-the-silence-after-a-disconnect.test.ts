/**
 * A client that disconnects from a stream whose server keeps the answer can retrieve it, also if it takes longer than the request may.
 * Then it owes what its model may have thought until the end, as if it had stayed. Other streams cost only the silence that the client
 * waited for (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import type { KeptState } from "../../../src/request/stored/kept-answer.ts";
import { Relayed } from "./rig.ts";

const LEAVING: DisconnectPlan = {
  ...{ forMs: Number.POSITIVE_INFINITY, bytesMax: 1_000, doubt: undefined },
  covers: () => true,
  begun: () => () => {},
};
/** The time that passes before a token can be written. */
const EXPECTED_MS = 1_000;

for (const [title, kept, cause, silentMs] of [
  ["an answer that takes longer than its request", { state: "running" }, "upstream_timeout", 600_000 - EXPECTED_MS],
  [
    "an answer without a count",
    { state: "ended", counts: { usage: undefined, final: false, produced: { bytes: 0, tokens: 0, deltas: 0 } } },
    "upstream_unavailable",
    600_000 - EXPECTED_MS,
  ],
  ["an answer whose connection broke", { state: "running" }, "upstream_unavailable", 10_000 - EXPECTED_MS],
  ["an answer that its server does not know", { state: "unknown" }, "upstream_timeout", 10_000 - EXPECTED_MS],
] as const satisfies readonly (readonly [string, KeptState, string, number])[]) {
  test(title, async () => {
    const stream = new Relayed({ semantic: false, leaving: LEAVING, kept: async () => kept });
    stream.clock.advance(10_000);
    stream.clientLeaves();
    stream.clock.advance(590_000);
    stream.upstreamFails(cause);
    const { reason, counts } = await stream.ended;
    assert.deepEqual([reason, counts.silentMs], ["client_gone", silentMs]);
  });
}

for (const kept of [{ state: "running" }, { state: "unknown" }] as const) {
  test(`the time in which the server is asked costs nothing: ${kept.state}`, async () => {
    const answer = Promise.withResolvers<KeptState>();
    const stream = new Relayed({ semantic: false, kept: () => answer.promise });
    stream.clock.advance(10_000);
    stream.upstreamFails("upstream_timeout");
    stream.clock.advance(4_000);
    answer.resolve(kept);
    assert.equal((await stream.ended).counts.silentMs, 10_000 - EXPECTED_MS);
  });
}
