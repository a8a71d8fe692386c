/**
 * Names, notes and messages in tables come from clients and upstreams. No sign of them may move the cursor, change colors,
 * start a new line or turn the direction of the text.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { cell, facts, table } from "../../../src/cli/output/table.ts";

test("control and format characters are shown as question marks, in tables and in lists of facts", () => {
  const note = "a\u001b[2Jb\u0007c\r\nd\u202ee\u0000f\u009bg";
  const shown = "a?[2Jb?c??d?e?f?g";
  assert.equal(cell(note), shown);
  assert.equal(table([{ title: "NOTE", member: "note" }], [{ note }]), `NOTE\n${shown}\n`);
  assert.equal(facts({ note: "Note" }, { note }), `Note  ${shown}\n`);
  assert.equal(cell("Zoë 漢字 😀"), "Zoë 漢字 😀");
});
