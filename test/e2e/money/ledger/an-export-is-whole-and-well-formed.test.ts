/**
 * `ledger show --format csv|json`: every line of every page, in a form that RFC 4180 and JSON readers parse back to the
 * same values.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { served, tollgate } from "./rig.ts";

let here: GatewayHere;
let account: TestAccount;
/** More than one page of the admin API. */
const LINES = 1_005;
const NOTES = ['he said "10,50", twice', "=1+1", "-2+3", "a,b", "@cmd", "ümläut"];

before(async () => {
  here = await startGatewayHere();
  account = await here.account();
  await served(here, account);
  for (const [index, note] of NOTES.entries()) {
    await here.store.credit(account.tag, { id: `adj-${index}`, amount: -1n, kind: "adjust", note });
  }
  for (let index = 0; index < LINES - 2 - NOTES.length; index++) {
    await here.store.credit(account.tag, { id: `pay-${index}`, amount: 1n, kind: "topup", note: "" });
  }
});
after(() => here.close());

/** A strict reader of RFC 4180: a quote inside an unquoted field is an error. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; at < text.length; ) {
    let value = "";
    if (text[at] === '"') {
      for (at += 1; ; at += 2) {
        const end = text.indexOf('"', at);
        assert.notEqual(end, -1, "the quote is closed");
        value += text.slice(at, end);
        at = end;
        if (text[at + 1] !== '"') break;
        value += '"';
      }
      at += 1;
    } else {
      const [plain = ""] = /^[^,\r\n]*/.exec(text.slice(at, at + 10_000)) ?? [];
      assert.ok(!plain.includes('"'), plain);
      value = plain;
      at += plain.length;
    }
    row.push(value);
    if (text[at] === ",") at += 1;
    else {
      assert.equal(text.slice(at, at + 2), "\r\n");
      at += 2;
      rows.push(row);
      row = [];
    }
  }
  return rows;
}

test("CSV has every line, and quotes are read back unchanged", async () => {
  const ran = await tollgate(here, "ledger", "show", "--account", account.name, "--format", "csv");
  assert.deepEqual([ran.status, ran.err], [0, ""]);
  const [heading = [], ...rows] = readCsv(ran.out);
  assert.equal(
    heading.join(","),
    "seq,at,kind,debit,credit,usd,balance_usd,reference,group,model,key,note,usage,attempts",
  );
  assert.deepEqual(
    rows.map(([seq]) => Number(seq)),
    Array.from({ length: LINES }, (_, index) => index + 1),
  );
  assert.ok(rows.every((row) => row.length === heading.length));
  const notes = rows.slice(2, 2 + NOTES.length).map((row) => row[heading.indexOf("note")]);
  // What a spreadsheet would run as a formula is marked as text.
  assert.deepEqual(notes, ['he said "10,50", twice', "'=1+1", "'-2+3", "a,b", "'@cmd", "ümläut"]);
  const usage = JSON.parse(rows[1]?.[heading.indexOf("usage")] as string) as Record<string, unknown>;
  assert.equal(usage.counted, "upstream");
});

test("JSON has the same lines, and the first line can be chosen", async () => {
  const ran = await tollgate(here, "ledger", "show", "--account", account.name, "--format", "json");
  const { items } = JSON.parse(ran.out) as { items: { seq: number; note: string }[] };
  assert.equal(items.length, LINES);
  assert.equal(items[2]?.note, NOTES[0]);
  const tail = await tollgate(here, "ledger", "show", "--account", account.name, "--format", "json", "--after", "1000");
  const rest = JSON.parse(tail.out) as { items: { seq: number }[] };
  assert.deepEqual(
    rest.items.map(({ seq }) => seq),
    [1_001, 1_002, 1_003, 1_004, 1_005],
  );
});

test("the table stays one page, and an unknown format is exit status 2", async () => {
  const page = await tollgate(here, "ledger", "show", "--account", account.name, "--limit", "2");
  assert.equal(page.out.split("\n").length, 4);
  assert.match(page.err, /--after 2\n$/);
  assert.equal((await tollgate(here, "ledger", "show", "--account", account.name, "--format", "xml")).status, 2);
  const limited = ["ledger", "show", "--account", account.name, "--format", "csv", "--limit", "5"];
  assert.equal((await tollgate(here, ...limited)).status, 2);
  assert.equal((await tollgate(here, "ledger", "show", "--account", "nobody", "--format", "csv")).status, 1);
});
