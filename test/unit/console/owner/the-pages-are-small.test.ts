/** What a browser loads for the console, all of it, is small. */
import assert from "node:assert/strict";
import test from "node:test";
import { pageFiles } from "../../../../src/console/page-files.ts";

const BYTES_MAX = 150 * 1024;

for (const set of ["owner", "operator"]) {
  test(`the files of the pages of an ${set} are below 150 KB, compressed as they are sent`, (t) => {
    const folders = new Set([set, "parts", "texts", "packages"]);
    const sent = [...pageFiles().files].filter(([path]) => folders.has(path.split("/")[0] as string));
    assert.ok(sent.length > 20);
    const bytes = sent.reduce((sum, [, { gzipped }]) => sum + gzipped.length, 0);
    t.diagnostic(`${sent.length} files, ${bytes} bytes compressed`);
    assert.ok(bytes < BYTES_MAX, `${bytes} bytes`);
  });
}
