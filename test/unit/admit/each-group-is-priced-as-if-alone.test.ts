/**
 * Groups in which a request costs the same are computed once (src/admit/serving.ts): no group may get another's
 * figures.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { measure, type OfferedTerms } from "../../../src/admit/terms.ts";
import type { Catalog, Group } from "../../../src/values/catalog.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import type { Multiplier } from "../../../src/values/price.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const FACTS: Envelope = {
  ...{
    protocol: "chat",
    model: MODEL.name,
    stream: false,
    choices: 1,
    bodyBytes: 3_000,
    textBytes: 3_000,
    textTokens: 0,
    media: [],
  },
  ...{ limit: { field: "max_tokens", value: 100 }, thinkingBudget: 0, compacts: false, includeUsage: false },
  ...{ serviceTier: undefined, tierParam: undefined, hostedTools: [], demandedTools: [], options: [] },
  hasOwnTools: true,
};
const ONE = [...CATALOG.groups.values()].find(({ kind }) => kind === "pay_per_use") as Group;

function group(name: string, multiplier: bigint, addedInputBytes: number, models = [MODEL.name]): Group {
  return { ...ONE, name, multiplier: multiplier as Multiplier, addedInputBytes, models };
}

function catalogOf(...groups: readonly Group[]): Catalog {
  return { ...CATALOG, groups: new Map(groups.map((one) => [one.name, one])) };
}

function offered(catalog: Catalog): readonly OfferedTerms[] {
  const quote = measure(FACTS, MODEL, catalog);
  assert.ok("groups" in quote);
  return quote.groups;
}

test("each group's terms are the same as if no other group served the model", () => {
  const groups = [
    group("a", 1_000_000n, 0),
    group("b", 2_000_000n, 0),
    { ...group("c", 1_000_000n, 0), limits: { ...ONE.limits, concurrency: 7 } },
    group("d", 1_000_000n, 600),
    group("e", 2_000_000n, 600),
  ];
  const together = offered(catalogOf(...groups));
  assert.deepEqual(
    together,
    groups.flatMap((one) => offered(catalogOf(one))),
  );
  assert.equal(new Set(together.map(({ holdFull }) => holdFull)).size, 4, "only a and c cost the same");
});

test("another catalog has its own groups, and only groups that serve the model are offered", () => {
  const names = (...groups: readonly Group[]) => offered(catalogOf(...groups)).map((one) => one.group);
  assert.deepEqual(names(group("a", 1_000_000n, 0)), ["a"]);
  assert.deepEqual(names(group("b", 1_000_000n, 0), group("c", 1_000_000n, 0, ["another"])), ["b"]);
  assert.deepEqual(names(group("c", 1_000_000n, 0, ["another"])), []);
});
