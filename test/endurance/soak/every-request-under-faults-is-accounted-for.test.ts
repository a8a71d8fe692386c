/**
 * Some seconds of `npm run soak`: a hundred concurrent streams, clients that disconnect, and upstreams that fail in
 * every way. Then each request as its client saw it is compared with the gateway's log and the ledger, and nothing may
 * be open, held or unsettled.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { soak } from "../../../bench/soak/run.ts";

const SECONDS = 12;
const STREAMS = 100;

for (const store of ["embedded", "redis"] as const) {
  test(`${store}: log, ledger and clients agree on every request`, async () => {
    const result = await soak({ seconds: SECONDS, streams: STREAMS, store, seed: 7, eventMs: 100 });
    assert.deepEqual(result.violations, []);
    const { complete, failed, refused, left, extended } = result.counted;
    for (const [what, count] of Object.entries({ complete, failed, refused, left, extended })) {
      assert.ok(count > 0, `no request was ${what}`);
    }
    assert.ok(result.upstreamRestarts > 0);
  });
}
