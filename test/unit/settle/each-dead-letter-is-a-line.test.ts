/** What the store will not take is kept for a person as one JSON object a line, and counted by its lines after the next start. */
import assert from "node:assert/strict";
import test from "node:test";
import { openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { askOf, ManualClock } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

test("letters are lines of their own, whatever is in them, and there are as many after the next start", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const letters = await openDeadLetters(disk, clock, () => {});
  await letters.add({ reason: "mismatch", ask: askOf(1), detail: "recorded 7" });
  await letters.add({ reason: "defect", ask: askOf(2), detail: "a line\nand another: 日本" });
  const file = disk.bytesOf("dead-letters.jsonl").toString();
  const written = file.split("\n").map((line) => (line === "" ? undefined : JSON.parse(line)));
  assert.deepEqual(
    written.map((letter) => letter && [letter.at, letter.reason, letter.ask.amount, letter.ask.memo, letter.detail]),
    [
      [new Date(clock.wallMs()).toISOString(), "mismatch", "101", askOf(1).memo, "recorded 7"],
      [new Date(clock.wallMs()).toISOString(), "defect", "102", askOf(2).memo, "a line\nand another: 日本"],
      undefined,
    ],
  );
  assert.equal((await openDeadLetters(disk, clock, () => {})).count(), 2);
});
