/** The bounds of durations and sizes that the schema and docs/configuration.md name are accepted, and nothing beyond them. */
import assert from "node:assert/strict";
import test from "node:test";
import { parseSize } from "../../../src/config/compile/units.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { configSchema } from "../../../src/config/schema/schema.ts";

interface Setting {
  readonly description?: string;
  readonly errorMessage?: string;
  readonly properties?: Readonly<Record<string, Setting>>;
  readonly patternProperties?: Readonly<Record<string, Setting>>;
}

/** Entries of all mappings by name are called `x`. */
const BASE = {
  upstreams: { x: { protocol: "chat", base_url: "http://127.0.0.1:9/v1" } },
  plans: { x: {} },
  models: {
    x: { plans: ["x"], price: { input: "1", output: "1" }, context_tokens: 1000, routes: [{ upstream: "x" }] },
  },
  groups: { x: { kind: "time_card", models: ["*"] } },
  cards: { x: { plan: "x", group: "x", lasts: "1d" } },
};

function* quantities(setting: Setting, path: readonly string[]): Generator<readonly [path: string[], Setting]> {
  if (/^must be a (?:duration|size):/.test(setting.errorMessage ?? "")) yield [[...path], setting];
  for (const [name, member] of Object.entries(setting.properties ?? {})) yield* quantities(member, [...path, name]);
  for (const member of Object.values(setting.patternProperties ?? {})) yield* quantities(member, [...path, "x"]);
}

/** Whether the loader refuses a value of this setting for its size. */
function isOutOfBounds(path: readonly string[], value: string | number): boolean {
  const file: Record<string, unknown> = structuredClone(BASE);
  let section = file;
  for (const name of path.slice(0, -1)) {
    section[name] ??= {};
    section = section[name] as Record<string, unknown>;
  }
  section[path.at(-1) as string] = value;
  const loaded = loadConfig({ text: JSON.stringify(file), env: {} });
  const problems = "problems" in loaded ? loaded.problems : [];
  return problems.some(({ key, message }) => key === path.join(".") && / must be a (?:duration|size) /.test(message));
}

for (const [path, { description = "", errorMessage = "" }] of quantities(configSchema as Setting, [])) {
  test(`the documented bounds of ${path.join(".")} are those of the loader`, () => {
    if (errorMessage.startsWith("must be a duration")) {
      const [, most = "1d"] = / At most (\S+)\.$/.exec(description) ?? [];
      assert.ok(!isOutOfBounds(path, most), most);
      const [, count, unit] = /^(\d+)(\w+)$/.exec(most) ?? [];
      assert.ok(isOutOfBounds(path, `${Number(count) + 1}${unit}`), `above ${most}`);
      assert.equal(isOutOfBounds(path, "0s"), !/\b0s: /.test(description), "0s");
      return;
    }
    const [, least = "", most = ""] = / From (\S+) to (\S+)\.$/.exec(description) ?? [];
    assert.ok(!isOutOfBounds(path, least) && !isOutOfBounds(path, most), `${least}, ${most}`);
    assert.ok(isOutOfBounds(path, (parseSize(least) as number) - 1), `below ${least}`);
    assert.ok(isOutOfBounds(path, (parseSize(most) as number) + 1), `above ${most}`);
  });
}
