/**
 * The version of the catalog is in every ledger line. Two replicas whose files differ only in the order of their entries
 * charge by the same prices, so their lines have the same version.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { settingsOf } from "./least.ts";

const model = {
  ...{ plans: ["free"], price: { input: "1", output: "2", tiers: { flex: { input: "1", output: "1" } } } },
  ...{ context_tokens: 4_000, routes: [{ upstream: "east" }] },
};
const group = { kind: "pay_per_use", models: ["*"] };
const FILE = {
  upstreams: { east: { protocol: "chat", base_url: "https://models.example/v1" } },
  plans: { free: {}, paid: {} },
  default_plan: "free",
  models: { "big-1": { ...model, context_tokens: 8_000 }, "small-1": model },
  groups: { some: { ...group, models: ["big-1"] }, all: group },
};

const turned = <T>(entries: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(entries).toReversed());

test("models, groups and plans in another order give the same version", () => {
  const { catalog } = settingsOf(JSON.stringify(FILE));
  const { plans, models, groups } = FILE;
  const same = { ...FILE, plans: turned(plans), models: turned(models), groups: turned(groups) };
  const { catalog: other } = settingsOf(JSON.stringify(turned(same)));
  assert.deepEqual([...other.models.keys()], ["small-1", "big-1"], "the order of the file");
  assert.equal(other.version, catalog.version);
});
