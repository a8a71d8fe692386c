// A store that lost its last second may hold less than it said before: a stream ends at the hold that the store reports now.
import assert from "node:assert/strict";
import test from "node:test";
import { HoldExtension } from "../../../src/request/hold-extension.ts";
import type { SeenCounts } from "../../../src/request/silence.ts";
import type { ExtendAnswer } from "../../../src/store/extension.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { ManualClock, turns } from "./rig.ts";

/** One nano-dollar per token. */
const seen = (tokens: number): SeenCounts => ({
  ...{ usage: undefined, final: false, silentMs: 0 },
  produced: { bytes: tokens, tokens, deltas: tokens },
});

function bench(answer: ExtendAnswer) {
  const told: [string, bigint][] = [];
  const targets: bigint[] = [];
  const extension = new HoldExtension({
    growth: { stepTokens: 100, outputTokensMax: 1_000, holdFor: (tokens) => nanoUsd(BigInt(tokens)) },
    ...{ hold: nanoUsd(100n), clock: new ManualClock() },
    bill: {
      extend: async (target) => {
        targets.push(target);
        return answer;
      },
      costOf: ({ produced }) => ({ usage: NO_USAGE, cost: nanoUsd(BigInt(produced.tokens)) }),
      extended: (outcome, hold) => void told.push([outcome, hold]),
    },
  });
  return { extension, told, targets };
}

test("a hold that has shrunk ends the stream when the rest of it is used", async () => {
  const { extension, told, targets } = bench({ outcome: "held", hold: nanoUsd(90n) });
  assert.equal(extension.look(seen(85)), "go");
  await turns(2);
  assert.deepEqual([targets, told], [[200n], [["refused", 90n]]]);
  assert.deepEqual([extension.look(seen(89)), extension.look(seen(90))], ["go", "stop"]);
});

test("a hold that could grow only in part ends the stream at its end", async () => {
  const { extension, told } = bench({ outcome: "held", hold: nanoUsd(150n) });
  assert.equal(extension.look(seen(85)), "go");
  await turns(2);
  assert.deepEqual(told, [["part", 150n]]);
  assert.deepEqual([extension.look(seen(149)), extension.look(seen(150))], ["go", "stop"]);
});

test("output produced during the extension counts against the new limit without a further request to the store", async () => {
  const { extension, targets } = bench({ outcome: "held", hold: nanoUsd(300n) });
  assert.equal(extension.look(seen(190)), "wait");
  await turns(2);
  assert.deepEqual([targets, extension.look(seen(190))], [[300n], "go"]);
});
