/** A Redis that still loads its data is not fit for use, but only for a time: a gateway that starts waits for it. */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { checkFitness } from "../../../src/store/redis/connection/health.ts";

test("loading is a temporary fault", () => {
  const info = (loading: number) =>
    `redis_version:7.4.0\r\nloading:${loading}\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n`;
  const options = { warn: () => undefined, demandAof: true };
  checkFitness(info(0), options);
  assert.throws(
    () => checkFitness(info(1), options),
    (error) => error instanceof StoreError && /loading/.test(error.message) && error.outcome === "unknown",
  );
});
