/** A journal has the ids, models and amounts of all clients, so no other user of the machine may read its files. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { nodeDisk } from "../../../src/settle/journal/disk.ts";

test("a segment, a file that is appended to and their folder have no rights for other users", async (t) => {
  const parent = mkdtempSync(join(tmpdir(), "journal-"));
  t.after(() => rmSync(parent, { recursive: true }));
  const dir = join(parent, "journal");
  const disk = nodeDisk(dir);
  const segment = await disk.create("journal-0000000001.seg", 4_096);
  segment.close();
  await disk.append("dead-letters.jsonl", Buffer.from("{}\n"));
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  assert.equal(modeOf(dir), "700");
  assert.equal(modeOf(join(dir, "journal-0000000001.seg")), "600");
  assert.equal(modeOf(join(dir, "dead-letters.jsonl")), "600");
});
