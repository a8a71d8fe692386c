/**
 * ARCHITECTURE.md promise 1: when a running stream asks the store to extend its hold, by how much, and what it does
 * with each answer.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type ExtensionOutcome, HoldExtension } from "../../../../src/request/hold-extension.ts";
import type { SeenCounts } from "../../../../src/request/silence.ts";
import type { ExtendAnswer } from "../../../../src/store/extension.ts";
import { type NanoUsd, nanoUsd } from "../../../../src/values/money.ts";
import { NO_USAGE } from "../../../../src/values/tokens/usage.ts";
import { HandClock } from "./hand-clock.ts";

/** A token costs 10, the input 1,000; a step is 100 tokens, and the model can produce 1,000. */
class Scene {
  readonly clock = new HandClock();
  readonly asked: bigint[] = [];
  readonly outcomes: [ExtensionOutcome, bigint][] = [];
  readonly holdExtension: HoldExtension;
  woken = 0;
  #answers: PromiseWithResolvers<ExtendAnswer>[] = [];

  constructor() {
    this.holdExtension = new HoldExtension({
      growth: {
        stepTokens: 100,
        outputTokensMax: 1_000,
        holdFor: (tokens) => nanoUsd(1_000n + 10n * BigInt(Math.min(tokens, 1_000))),
      },
      hold: nanoUsd(2_000n),
      clock: this.clock,
      bill: {
        extend: (target: NanoUsd) => {
          this.asked.push(target);
          const answer = Promise.withResolvers<ExtendAnswer>();
          this.#answers.push(answer);
          return answer.promise;
        },
        costOf: ({ produced: { tokens } }) => ({
          usage: { ...NO_USAGE, output: tokens },
          cost: nanoUsd(1_000n + BigInt(tokens) * 10n),
        }),
        extended: (outcome, hold) => void this.outcomes.push([outcome, hold]),
      },
    });
    this.holdExtension.onAnswer(() => {
      this.woken++;
    });
  }

  look(tokens: number, final = false): string {
    const produced = { bytes: tokens * 4, tokens, deltas: 1 };
    const counts: SeenCounts = { usage: undefined, final, produced, silentMs: 0 };
    return this.holdExtension.look(counts);
  }

  async answer(answer: ExtendAnswer | Error): Promise<void> {
    const waiting = this.#answers.shift();
    assert.ok(waiting);
    if (answer instanceof Error) waiting.reject(answer);
    else waiting.resolve(answer);
    const before = this.woken;
    while (this.woken === before) await Promise.resolve();
  }

  held(hold: bigint): Promise<void> {
    return this.answer({ outcome: "held", hold: nanoUsd(hold) });
  }
}

test("with more than a fifth of the step left the store is not asked; then it is asked once, for one step", async () => {
  const scene = new Scene();
  assert.equal(scene.look(0), "go");
  assert.equal(scene.look(80), "go");
  assert.deepEqual(scene.asked, []);
  assert.equal(scene.look(81), "go");
  assert.equal(scene.look(90), "go");
  assert.deepEqual(scene.asked, [3_000n]);
  await scene.held(3_000n);
  assert.deepEqual(scene.outcomes, [["extended", 3_000n]]);
  assert.equal(scene.look(180), "go");
  assert.equal(scene.asked.length, 1);
  assert.equal(scene.look(181), "go");
  assert.deepEqual(scene.asked, [3_000n, 4_000n]);
});

test("at the edge of its hold the stream waits for the answer, and continues with it", async () => {
  const scene = new Scene();
  assert.equal(scene.look(100), "wait");
  await scene.held(3_000n);
  assert.equal(scene.woken, 1);
  assert.equal(scene.look(100), "go");
});

test("after a burst one request extends the hold far enough, but not above the model's maximum", async () => {
  const scene = new Scene();
  assert.equal(scene.look(350), "wait");
  assert.deepEqual(scene.asked, [5_000n]);
  await scene.held(5_000n);
  assert.equal(scene.look(5_000), "wait");
  assert.deepEqual(scene.asked, [5_000n, 11_000n]);
  await scene.held(11_000n);
  assert.equal(scene.look(5_000), "go", "a hold for the longest possible output needs no margin");
});

test("a partial extension is the last one requested, and is used to its end", async () => {
  const scene = new Scene();
  scene.look(90);
  await scene.held(2_500n);
  assert.deepEqual(scene.outcomes, [["part", 2_500n]]);
  assert.equal(scene.look(149), "go");
  assert.equal(scene.look(150), "stop");
  assert.equal(scene.asked.length, 1);
});

test("if the extension is refused or the hold is gone, the stream continues to the edge", async () => {
  for (const [answer, outcome] of [
    [{ outcome: "held", hold: nanoUsd(2_000n) }, "refused"],
    [{ outcome: "gone" }, "gone"],
  ] as const) {
    const scene = new Scene();
    scene.look(90);
    await scene.answer(answer);
    assert.deepEqual(scene.outcomes, [[outcome, 2_000n]]);
    assert.deepEqual([scene.look(99), scene.look(100), scene.asked.length], ["go", "stop", 1]);
  }
});

test("a store that fails is asked again a second later, and the stream ends at the edge in the meantime", async () => {
  const scene = new Scene();
  scene.look(85);
  await scene.answer(new Error("away"));
  assert.deepEqual(scene.outcomes, [["unavailable", 2_000n]]);
  assert.deepEqual([scene.look(90), scene.asked.length], ["go", 1]);
  scene.clock.advance(1_000);
  assert.deepEqual([scene.look(90), scene.asked.length], ["go", 2]);
  await scene.answer(new Error("away"));
  assert.equal(scene.look(100), "stop");
});

test("a stream whose final count is known is not stopped", () => {
  const scene = new Scene();
  assert.equal(scene.look(500, true), "go");
  assert.deepEqual(scene.asked, []);
});
