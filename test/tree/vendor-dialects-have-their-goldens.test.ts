/** docs/vendor-dialects.md has the contents of the goldens, and each of them names its source. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";
import { dialects, isRefused } from "../e2e/protocol/dialects/goldens.ts";
import { dialectsDocument, FILE } from "./dialects-file.ts";

test("the page is what npm run dialects writes, and contains each golden once", () => {
  const page = readFileSync(FILE, "utf8");
  assert.equal(page, dialectsDocument());
  const rows = [...page.matchAll(/^\| `([a-z0-9-]+\/[a-z0-9-]+)` \|/gm)].map(([, name]) => name);
  const files = globSync("**/*.json", { cwd: "test/golden/dialects" }).map((file) => file.replace(/\.json$/, ""));
  assert.deepEqual(rows.sort(), files.sort());
  assert.ok(rows.length >= 60, `${rows.length} forms`);
});

test("each golden names its vendor, form, source and date, and has something to send", () => {
  for (const { name, vendor, form, source, date, whole, frames, stream } of dialects()) {
    for (const text of [vendor, form]) assert.match(text, /^[^|\n]+$/, name);
    assert.ok(source.length > 0, name);
    for (const url of source) assert.match(url, /^https:\/\/\S+$/, name);
    assert.match(date, /^(read )?20\d\d-[01]\d-[0-3]\d$/, name);
    assert.ok(whole !== undefined || frames !== undefined || stream !== undefined, name);
  }
});

test("each golden expects a refusal with its text, or everything that a client has at the end", () => {
  for (const { name, expect } of dialects()) {
    if (isRefused(expect)) assert.match(expect.error.means, /^[a-z_]+$/, name);
    else assert.deepEqual(Object.keys(expect), ["text", "reasoning", "calls", "end", "usage"], name);
  }
});
