/**
 * Rule 17: the white space at the end of a prefill is left out. The client chooses how much there is, and translation is
 * one turn of the event loop (docs/failure-model.md invariant 27).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { withoutBlankEnd } from "../../../../src/convert/rules/system.ts";
import { workTimer } from "../../../rig/stopwatch.ts";

const RUNS = 10;
/** Characters of white space; a body may have 32 times as many. */
const BLANKS = 1024 * 1024;

test("white space is removed from the end of a text in at most three times the time in which it is written", () => {
  // Read, so that it is one piece, as in a body.
  const text = JSON.parse(JSON.stringify(`so${" ".repeat(BLANKS)}`)) as string;
  const timeOf = (work: () => void) => {
    const took = workTimer();
    for (let run = 0; run < RUNS; run++) work();
    return took();
  };
  const removingMs = timeOf(() => assert.equal(withoutBlankEnd(text), "so"));
  const writingMs = timeOf(() => JSON.stringify(text));
  assert.ok(removingMs < 3 * writingMs, `${removingMs} ms, and ${writingMs} ms to write it`);
});

test("a byte order mark at the end stays, because it is not white space to the servers that refuse it", () => {
  assert.equal(withoutBlankEnd("so \ufeff \n"), "so \ufeff");
  assert.equal(withoutBlankEnd("\ufeffso\u00a0\u2003"), "\ufeffso");
  assert.equal(withoutBlankEnd(" \n "), "");
});
