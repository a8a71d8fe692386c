/**
 * A type's name has one meaning in the whole of `src/`, exported or not, so that readers need not look up where it was
 * declared.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";

const DECLARATION =
  /^\s*(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) ([A-Za-z_$][\w$]*)(?=<|\s*[={]|\s+(?:extends|implements)\b)/gm;

const homes = new Map<string, Set<string>>();
for (const file of globSync("src/**/*.ts").sort()) {
  for (const [, name] of readFileSync(file, "utf8").matchAll(DECLARATION)) {
    const files = homes.get(name as string) ?? new Set();
    homes.set(name as string, files.add(file));
  }
}

test("there are types to check", () => {
  assert.ok(homes.size > 500, `${homes.size} types`);
});

test("no type name is declared in two files", () => {
  const twice = [...homes].filter(([, files]) => files.size > 1);
  assert.deepEqual(
    twice.map(([name, files]) => `${name}: ${[...files].join(" ")}`),
    [],
  );
});
