/**
 * Settlements that come together wait some milliseconds for others to share a commit. One that comes alone is committed after its
 * turn of the loop, without a timer.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDatabase } from "../../../src/store/embedded/database/open.ts";

test("one alone has no timer, those after several have one", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "tollgate-alone-"));
  t.after(() => rmSync(parent, { recursive: true, force: true }));
  const db = openDatabase(join(parent, "data"));
  const timers = t.mock.method(globalThis, "setTimeout");
  const settled = () => db.commitTogether(() => "settled");
  assert.equal(await settled(), "settled");
  assert.equal(timers.mock.callCount(), 0, "it was alone");
  await Promise.all([settled(), settled()]);
  assert.equal(timers.mock.callCount(), 0, "those before were alone");
  await settled();
  assert.deepEqual(
    timers.mock.calls.map((call) => call.arguments[1]),
    [25],
  );
  await settled();
  assert.equal(timers.mock.callCount(), 1, "it was alone again");
  db.close();
});
