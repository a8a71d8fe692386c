/** The line of a request is written in a way of its own, for speed. It is an `info` line like any other. */
import assert from "node:assert/strict";
import test from "node:test";
import { createLog } from "../../../src/telemetry/log.ts";

for (const [level, expected] of [
  ["debug", 1],
  ["info", 1],
  ["warn", 0],
  ["error", 0],
] as const) {
  test(`with the level ${level}, a request leaves ${expected === 1 ? "a line" : "no line"}`, () => {
    const lines: string[] = [];
    const log = createLog({ level, destination: { write: (line) => lines.push(line) } });
    log.written(',"status":200', "request");
    assert.equal(lines.length, expected);
  });
}
