/** What a browser loads for the console, all of it, is small. */
import assert from "node:assert/strict";
import test from "node:test";
import { pageFiles } from "../../../../src/console/page-files.ts";

const BYTES_MAX = 150 * 1024;

test("all files of the pages together are below 150 KB, compressed as they are sent", (t) => {
  const { files } = pageFiles();
  assert.ok(files.size > 20);
  const bytes = [...files.values()].reduce((sum, { gzipped }) => sum + gzipped.length, 0);
  t.diagnostic(`${files.size} files, ${bytes} bytes compressed`);
  assert.ok(bytes < BYTES_MAX, `${bytes} bytes`);
});
