/**
 * Invariant 33: the same servers have the same identity, in whichever order they answer, and none while one of them loads
 * its data. The test simulates the answers, whose order no real cluster can be made to change.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { identityNow } from "../../../src/store/redis/connection/health.ts";
import type { Runner } from "../../../src/store/redis/connection/runner.ts";

const info = (run: string, loading = 0) =>
  `run_id:${run}\r\nmaster_replid:of-${run}\r\nrole:master\r\nloading:${loading}\r\n`;

function identityOf(...infos: readonly string[]): Promise<string> {
  const redis = { infos: async () => infos.map((value) => ({ status: "fulfilled", value })) };
  return identityNow({ step: (work: (one: unknown) => unknown) => work(redis) } as unknown as Runner);
}

test("two orders of the same answers are one identity", async () => {
  assert.equal(await identityOf(info("a"), info("b")), await identityOf(info("b"), info("a")));
  assert.notEqual(await identityOf(info("a"), info("b")), await identityOf(info("a"), info("c")));
});

test("a server that loads its data has no identity yet", async () => {
  await assert.rejects(identityOf(info("a"), info("b", 1)), /unknown which Redis answers/);
});
