/**
 * npm makes the files of `bin` executable during installation. They must be executable in git too, or git shows a
 * change.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";

test("every program of package.json is executable in git", () => {
  const { bin } = JSON.parse(readFileSync("package.json", "utf8")) as { bin: Record<string, string> };
  const programs = Object.values(bin);
  assert.ok(programs.length > 0);
  for (const file of programs) {
    const kept = execFileSync("git", ["ls-files", "--stage", "--", file], { encoding: "utf8" });
    assert.match(kept, /^100755 /, file);
  }
});
