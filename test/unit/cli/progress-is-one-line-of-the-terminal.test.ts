/** The progress display of a long command. */
import assert from "node:assert/strict";
import test from "node:test";
import { Terminal } from "../../../src/cli/output/terminal.ts";

const CLEAR = "\r\u001b[K";

function shownBy(out: { isTTY: boolean; columns?: number }, use: (terminal: Terminal) => void): string {
  let shown = "";
  use(new Terminal({ ...out, write: (text) => (shown += text) }, () => Promise.resolve()));
  return shown;
}

test("progress is cut at the width of the terminal, and its control characters are replaced", () => {
  const long = "x".repeat(200);
  assert.equal(
    shownBy({ isTTY: true, columns: 50 }, (terminal) => terminal.progress(long)),
    `${CLEAR}${"x".repeat(49)}`,
  );
  assert.equal(
    shownBy({ isTTY: true }, (terminal) => terminal.progress(long)),
    `${CLEAR}${"x".repeat(79)}`,
  );
  assert.equal(
    shownBy({ isTTY: true }, (terminal) => terminal.progress("of a\u001b[2Jb\n")),
    `${CLEAR}of a?[2Jb?`,
  );
});

test("a permanent line replaces the progress; without a terminal only permanent lines are printed", () => {
  const use = (terminal: Terminal) => {
    terminal.progress("1 of 2");
    terminal.note("done");
    terminal.clear();
  };
  assert.equal(shownBy({ isTTY: true }, use), `${CLEAR}1 of 2${CLEAR}done\n`);
  assert.equal(shownBy({ isTTY: false }, use), "done\n");
});
