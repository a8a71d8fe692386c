/**
 * Workers write to one pipe, which writes up to 4,096 bytes atomically and may interleave longer writes with those of
 * others (POSIX, write). So each write must be whole lines, and not longer than that.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createLog } from "../../../src/telemetry/log.ts";

const MARK = "written by this test";
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("many lines of one turn are written in pieces of whole lines that a pipe writes atomically", async (t) => {
  const pieces: string[] = [];
  let waiting: (() => void) | undefined;
  const { write } = process.stdout;
  const others = write.bind(process.stdout) as (...args: unknown[]) => boolean;
  // The test runner writes there as well.
  t.mock.method(process.stdout, "write", (...args: unknown[]) => {
    if (!String(args[0]).includes(MARK)) return others(...args);
    assert.equal(waiting, undefined, "the pieces are written one at a time, because the stream would join them");
    pieces.push(String(args[0]));
    waiting = args[1] as () => void;
    return true;
  });
  const log = createLog({ level: "info" });
  for (let i = 0; i < 300; i++) log.info({ i, model: "字".repeat(i % 90) }, MARK);
  log.info({ i: 300, model: "x".repeat(9_000) }, MARK);
  log.info({ i: 301 }, MARK);
  await nextTurn();
  log.info({ i: 302 }, MARK);
  await nextTurn();
  while (waiting) {
    const written = waiting;
    waiting = undefined;
    written();
  }
  log.info({ i: 303 }, MARK);
  await nextTurn();
  t.mock.restoreAll();
  const lines = pieces.join("").trimEnd().split("\n");
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { i: number }).i),
    Array.from({ length: 304 }, (_, i) => i),
  );
  assert.ok(pieces.every((piece) => piece.endsWith("\n")));
  const large = pieces.filter((piece) => Buffer.byteLength(piece) > 4_096);
  assert.deepEqual(
    large.map((piece) => piece.split("\n").length - 1),
    [1],
    "only a single line that is too long",
  );
  assert.ok(pieces.length < 30, `${pieces.length} pieces for 304 lines`);
});
