/** A browser loads little for a set of the console's pages: all of its files, and the texts of both languages. */
import assert from "node:assert/strict";
import test from "node:test";
import { pageFiles } from "../../../../src/console/page-files.ts";

const BYTES_MAX = 150 * 1024;
const SETS = ["owner", "operator"] as const;

/** Bytes sent for all files except those that only the other set has. */
function bytesOf(set: (typeof SETS)[number]): number {
  const others = SETS.filter((one) => one !== set);
  const own = [...pageFiles().files].filter(([path]) => !others.some((other) => path.startsWith(`${other}/`)));
  assert.ok(own.some(([path]) => path === `${set}/main.ts`));
  return own.reduce((sum, [, { gzipped }]) => sum + gzipped.length, 0);
}

for (const set of SETS) {
  test(`the pages of the ${set} are below 150 KB together, compressed as they are sent`, (t) => {
    const bytes = bytesOf(set);
    t.diagnostic(`${bytes} bytes compressed`);
    assert.ok(bytes < BYTES_MAX, `${bytes} bytes`);
  });
}

test("no single file is above a fifth of that", (t) => {
  const sizes = [...pageFiles().files].map(([path, { gzipped }]) => [path, gzipped.length] as const);
  t.diagnostic(`${sizes.length} files, ${sizes.reduce((sum, [, size]) => sum + size, 0)} bytes compressed`);
  assert.deepEqual(
    sizes.filter(([, size]) => size > BYTES_MAX / 5),
    [],
  );
});
