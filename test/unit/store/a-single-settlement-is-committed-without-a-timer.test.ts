/**
 * Settlements that follow one another wait some milliseconds to share a commit. A single settlement is committed at the end of
 * its turn of the event loop, without a timer.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDatabase } from "../../../src/store/embedded/database/open.ts";

test("a settlement soon after another sets a timer, and a single one does not", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "tollgate-alone-"));
  t.after(() => rmSync(parent, { recursive: true, force: true }));
  const db = openDatabase(join(parent, "data"));
  let nowMs = 1_000;
  t.mock.method(performance, "now", () => nowMs);
  const timers = t.mock.method(globalThis, "setTimeout");
  const waits = () => timers.mock.calls.map((call) => call.arguments[1]);
  const settled = () => db.commitTogether(() => "settled");
  assert.equal(await settled(), "settled");
  assert.deepEqual(waits(), [], "the first settlement is committed at once");
  nowMs += 24;
  await settled();
  assert.deepEqual(waits(), [25], "a settlement soon after another waits");
  // The time counts from its arrival, not from its commit.
  nowMs += 25;
  await settled();
  assert.deepEqual(waits(), [25], "it was alone");
  await Promise.all([settled(), settled()]);
  assert.deepEqual(waits(), [25, 25], "several in one turn share one timer");
  nowMs += 25;
  await Promise.all([settled(), settled()]);
  assert.deepEqual(waits(), [25, 25], "also after several the time counts from their arrival");
  db.close();
});
