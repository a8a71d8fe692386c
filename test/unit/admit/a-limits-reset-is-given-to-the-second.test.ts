/** The reset of a limit as messages clients get it: a timestamp that is formatted without Date. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { limitHeaders } from "../../../src/admit/limit-headers.ts";

test("property: the timestamp equals that of a Date without its milliseconds", () => {
  const wall = fc.double({ min: 0, max: 4e12, noNaN: true });
  fc.assert(
    fc.property(wall, fc.nat(100_000), (wallMs, resetMs) => {
      const requests = { limit: 2, remaining: 1, resetMs };
      const headers = limitHeaders("messages", { requests, tokens: undefined }, wallMs);
      const expected = new Date(wallMs + resetMs).toISOString().replace(/\.\d+Z$/, "Z");
      assert.equal(headers["anthropic-ratelimit-requests-reset"], expected);
    }),
    { numRuns: 2_000, seed: 26 },
  );
});
