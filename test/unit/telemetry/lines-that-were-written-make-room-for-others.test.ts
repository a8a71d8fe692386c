/**
 * What waits for the reader of the log is limited in bytes. A line that was written no longer counts, whatever
 * characters it has; otherwise a gateway would stop to log its requests after some hours.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createLog, takeDroppedLines } from "../../../src/telemetry/log.ts";

const MARK = "written by the test of room";
const LINES = 6_000;

test("no line is dropped while all lines are read, however many bytes their characters take", async (t) => {
  let written = 0;
  const { write } = process.stdout;
  const others = write.bind(process.stdout) as (...args: unknown[]) => boolean;
  // The test runner writes there as well.
  t.mock.method(process.stdout, "write", (...args: unknown[]) => {
    if (!String(args[0]).includes(MARK)) return others(...args);
    written++;
    (args[1] as () => void)();
    return true;
  });
  takeDroppedLines();
  const log = createLog({ level: "info" });
  for (let n = 0; n < LINES; n++) {
    log.info({ model: "字".repeat(1_000) }, MARK);
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.mock.restoreAll();
  assert.deepEqual([written, takeDroppedLines()], [LINES, 0]);
});
