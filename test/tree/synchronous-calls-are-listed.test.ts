/**
 * A synchronous call holds the event loop while it waits for a disk, which tests that measure CPU time do not notice. So docs/overload.md
 * lists all files of a serving process that import one.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";

/** Imports of Node's modules, except of types. */
const IMPORTS = /^import \{([^}]*)\} from "node:[a-z/_]+";/gm;
const SYNCHRONOUS = /^(?!type )\w+Sync\b/;

/** Commands run in a process of their own. */
const FILES = globSync("src/**/*.ts").filter((path) => !path.startsWith("src/cli/"));

function isSynchronous(text: string): boolean {
  const names = [...text.matchAll(IMPORTS)].flatMap(([, list = ""]) => list.split(",").map((name) => name.trim()));
  return names.some((name) => SYNCHRONOUS.test(name)) || /\bAtomics\.wait\(/.test(text);
}

test("docs/overload.md lists each file of a serving process that imports a synchronous call", () => {
  const [, section = ""] = readFileSync("docs/overload.md", "utf8").split("\n## Synchronous calls\n");
  const listed = [...section.matchAll(/^\| (`src\/[^|]*)\|/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path),
  );
  assert.deepEqual(listed.sort(), FILES.filter((path) => isSynchronous(readFileSync(path, "utf8"))).sort());
});
