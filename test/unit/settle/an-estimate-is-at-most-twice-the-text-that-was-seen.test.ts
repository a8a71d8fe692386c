/**
 * How many tokens the text of a model has is learned from its counts. A count may include a little hidden output, so the
 * learned density has a maximum: a client that disconnects pays for at most twice the text that it was sent.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Observed } from "../../../src/settle/observed.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";

const PLACE = { upstream: "up", upstreamModel: "m" };

test("replies whose counts are just below what counts as hidden output raise the density to 2 at most", () => {
  const observed = new Observed();
  for (let i = 0; i < 10; i++) {
    const produced = { bytes: 400, tokens: 100, deltas: 100 };
    observed.note(PLACE, { usage: { ...NO_USAGE, output: 264 }, produced, silentMs: 0 });
  }
  const { thinks, visibleFactor } = observed.paceOf(PLACE, false);
  assert.deepEqual([thinks, visibleFactor], ["unknown", 2]);
});
