/**
 * A gateway notices that its store has lost data by the counts that it keeps in a file. A file whose counts are not whole
 * numbers would hide every loss, so the gateway does not start with it.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { epochFile } from "../../../src/settle/recovery/epoch-file.ts";

test("a history file is refused if a part, a count, a base or a number of returns is not a whole number", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-epoch-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const whole = { id: "a", count: 7, base: 5, times: 2, past: ["z"] };
  const load = (part: unknown, changes: object) => {
    writeFileSync(join(dir, "store-epoch.json"), JSON.stringify({ parts: [[part, { ...whole, ...changes }]] }));
    return epochFile(dir).load();
  };
  assert.deepEqual(await load(0, {}), new Map([[0, whole]]));
  for (const damaged of [{ count: "7" }, { count: 7.5 }, { count: null }, { base: "5" }, { times: "2" }])
    await assert.rejects(load(0, damaged), /store-epoch\.json cannot be read/, JSON.stringify(damaged));
  await assert.rejects(load("0", {}), /store-epoch\.json cannot be read/);
});
