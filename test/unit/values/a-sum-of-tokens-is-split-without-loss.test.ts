/**
 * An upstream that reports one sum of input and output, and its reasoning apart, is billed for all of it: no token is lost
 * where the sum is split.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { billedUsage, NO_USAGE } from "../../../src/values/tokens/usage.ts";

/** A sum of 80 beside 20 tokens of reasoning, which are output. */
const COUNTED = { ...NO_USAGE, output: 20, reasoning: 20, unsplit: 80 };

for (const [inputEstimate, input] of [
  [0, 0],
  [30, 30],
  [80, 80],
  [500, 80],
] as const) {
  test(`of a request of about ${inputEstimate} tokens ${input} of the sum are input, the rest is output`, () => {
    const { usage, estimated } = billedUsage(COUNTED, { final: true, inputEstimate, outputEstimate: 0 });
    assert.deepEqual([usage.input, usage.output, usage.reasoning], [input, 100 - input, 20]);
    assert.equal(estimated, true);
  });
}
