// Where a vendor's figures differ from ours: the share is of the larger side, whichever that is, and credits round as charges do.
import assert from "node:assert/strict";
import test from "node:test";
import { nanoOfCost } from "../../../src/cli/invoice/columns.ts";
import { compareFigures } from "../../../src/cli/invoice/compare.ts";
import { type ByDay, NO_FIGURES } from "../../../src/cli/invoice/invoice.ts";

const DAY = "2026-08-01";

function side(model: string, cost: bigint): ByDay {
  return new Map([[DAY, new Map([[model, { ...NO_FIGURES, cost }]])]]);
}

function compare(theirs: ByDay, ours: ByDay, { share = 0.1, allModels = false } = {}) {
  return compareFigures(theirs, ours, { tells: ["cost"], share, names: new Map(), allModels });
}

test("the share is of the larger of the two, whoever has billed more", () => {
  for (const [theirs, ours, share, differs] of [
    [100n, 90n, 0.1, false],
    [90n, 100n, 0.1, false],
    [100n, 89n, 0.11, true],
    [89n, 100n, 0.11, true],
    [0n, 1n, 1, true],
    [1n, 0n, 1, true],
    // A credit against a charge.
    [-50n, 50n, 1, true],
    [-100n, -90n, 0.1, false],
    [-90n, -100n, 0.1, false],
    [0n, 0n, 0, false],
  ] as const) {
    const { items, differing } = compare(side("m", theirs), side("m", ours));
    assert.deepEqual([items[0]?.share, items[0]?.differs], [share, differs], `${theirs} against ${ours}`);
    assert.deepEqual(differing, differs ? [{ day: DAY, model: "m" }] : []);
  }
});

test("a model that the ledger has nothing of differs where all models are asked for; one that they lack always does", () => {
  const [theirs, ours] = [side("theirs", 5n), side("ours", 7n)];
  const some = compare(theirs, ours);
  assert.deepEqual([some.differing, some.others.get("theirs")?.cost], [[{ day: DAY, model: "ours" }], 5n]);
  const all = compare(theirs, ours, { allModels: true });
  const models = all.differing.map(({ model }) => model);
  assert.deepEqual([models, all.others.size], [["ours", "theirs"], 0]);
});

test("one name of theirs for what the ledger has under two is held against both together", () => {
  const ours: ByDay = new Map([
    [
      DAY,
      new Map([
        ["m", { ...NO_FIGURES, cost: 4n }],
        ["m-2026-01-31", { ...NO_FIGURES, cost: 6n }],
      ]),
    ],
  ]);
  const { items, differing } = compare(side("m", 10n), ours, { share: 0 });
  assert.deepEqual(
    items.map(({ model, theirs, ours: sum }) => [model, theirs, sum]),
    [["m + m-2026-01-31", 10n, 10n]],
  );
  assert.deepEqual(differing, []);
});

test("a cost is rounded half away from zero, a credit as a charge", () => {
  const nano = 1_000_000n;
  for (const [cost, expected] of [
    [nano / 2n - 1n, 0n],
    [nano / 2n, 1n],
    [(3n * nano) / 2n, 2n],
  ] as const) {
    assert.deepEqual([nanoOfCost(cost), nanoOfCost(-cost)], [expected, -expected]);
  }
});
