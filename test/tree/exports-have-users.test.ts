/**
 * Every export of a file of `src/` is used by another file. A test counts, because what it needs to see is exported.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";

const EXPORT =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:type|interface|class|const|let|function\*?) ([A-Za-z_$][\w$]*)/gm;

const code = new Map(
  globSync(["src/**/*.ts", "test/**/*.ts", "bench/**/*.ts", "grafana/**/*.ts", "build/**/*.ts"]).map((file) => [
    file,
    readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, ""),
  ]),
);
const users = new Map<string, number>();
for (const text of code.values()) {
  for (const word of new Set(text.match(/[A-Za-z_$][\w$]*/g))) users.set(word, (users.get(word) ?? 0) + 1);
}

test("no file exports a name that no other file mentions", () => {
  const exported = [...code]
    .filter(([file]) => file.startsWith("src/"))
    .flatMap(([file, text]) => [...text.matchAll(EXPORT)].map(([, name]) => ({ file, name: name as string })));
  assert.ok(exported.length > 1_000, `${exported.length} exports`);
  const unused = exported.filter(({ name }) => users.get(name) === 1);
  assert.deepEqual(
    unused.map(({ file, name }) => `${file} ${name}`),
    [],
  );
});
