/** Messages clients are told an instant, which is put together by hand. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { limitHeaders } from "../../../src/admit/limit-headers.ts";

test("property: the instant is the one of a Date, without what is below a second", () => {
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
