// How a vendor's figures are compared with the ledger's: the share is of the larger figure, and credits are rounded
// like charges.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { nanoOfCost } from "../../../src/cli/invoice/columns.ts";
import { compareFigures } from "../../../src/cli/invoice/compare.ts";
import { type ByDay, NO_FIGURES } from "../../../src/cli/invoice/invoice.ts";
import { run } from "./captured-run.ts";

const DAY = "2026-08-01";

function side(model: string, cost: bigint): ByDay {
  return new Map([[DAY, new Map([[model, { ...NO_FIGURES, cost }]])]]);
}

function compare(theirs: ByDay, ours: ByDay, { share = 0.1, allModels = false } = {}) {
  return compareFigures(theirs, ours, { tells: ["cost"], share, names: new Map(), allModels });
}

test("the share is of the larger figure, whichever side has billed more", () => {
  for (const [theirs, ours, share, differs] of [
    [100n, 90n, 0.1, false],
    [90n, 100n, 0.1, false],
    [100n, 89n, 0.11, true],
    [89n, 100n, 0.11, true],
    [0n, 1n, 1, true],
    [1n, 0n, 1, true],
    // A credit compared with a charge.
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

test("a model that the ledger lacks differs only with allModels; a model that the vendor lacks always differs", () => {
  const [theirs, ours] = [side("theirs", 5n), side("ours", 7n)];
  const some = compare(theirs, ours);
  assert.deepEqual([some.differing, some.others.get("theirs")?.cost], [[{ day: DAY, model: "ours" }], 5n]);
  const all = compare(theirs, ours, { allModels: true });
  const models = all.differing.map(({ model }) => model);
  assert.deepEqual([models, all.others.size], [["ours", "theirs"], 0]);
});

test("a vendor's model that the ledger has under two names is compared with the sum of both", () => {
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

test("input is the sum of new, cached and cache-write tokens", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-invoice-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const from = join(dir, "export.csv");
  writeFileSync(from, `date,model,input_tokens,output_tokens\n${DAY},m,1230,4\n`);
  const counts = { input_tokens: 1_000, cached_input_tokens: 200, cache_write_tokens: 30, output_tokens: 4 };
  const ran = await run(["--json", "reconcile", "--from", from, "--upstream", "east", "--share", "0"], {
    env: { TOLLGATE_ADMIN_URL: "http://gateway.invalid", TOLLGATE_ADMIN_TOKEN: "token" },
    fetch: async () => Response.json({ items: [{ day: DAY, model: "m", ...counts, cost_usd: "1.00" }], next: null }),
  });
  assert.equal(ran.status, 0, ran.err);
  const { items } = JSON.parse(ran.out) as { items: { figure: string; theirs: number; ours: number }[] };
  assert.deepEqual(
    items.map(({ figure, theirs, ours }) => [figure, theirs, ours]),
    [
      ["input", 1_230, 1_230],
      ["output", 4, 4],
    ],
  );
});

test("a cost is rounded half away from zero, for credits and charges alike", () => {
  const nano = 1_000_000n;
  for (const [cost, expected] of [
    [nano / 2n - 1n, 0n],
    [nano / 2n, 1n],
    [(3n * nano) / 2n, 2n],
  ] as const) {
    assert.deepEqual([nanoOfCost(cost), nanoOfCost(-cost)], [expected, -expected]);
  }
});
