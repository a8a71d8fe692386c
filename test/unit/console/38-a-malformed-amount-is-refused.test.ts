import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

// docs/failure-model.md row 38. BigInt("") is 0, BigInt(" 12 ") is 12, BigInt("0x10") is 16, parseInt("12abc") is 12.
const MALFORMED_TEXTS = [
  "-5",
  "0",
  "0.00",
  "-0",
  "",
  "1e3",
  "NaN",
  "Infinity",
  "0x10",
  " 12 ",
  "12 ",
  "+5",
  "05",
  ".5",
  "5.",
  "1,000",
  "12abc",
  "0.0000000001",
  "9000000.000000001",
  "9007199254740993",
  "99999999999999999999",
  "９",
];
const MALFORMED_RAW = [
  "-5",
  "0",
  "1.5",
  "1e3",
  "10",
  "9007199254740993",
  "99999999999999999999",
  "null",
  "true",
  "[]",
  "{}",
  '["10"]',
];

test("row 38: each malformed amount is 400 and names the field", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const bodies = [
    ...MALFORMED_TEXTS.map((usd) => JSON.stringify({ usd, id: "pay_1" })),
    ...MALFORMED_RAW.map((raw) => `{"usd":${raw},"id":"pay_1"}`),
  ];
  for (const body of bodies) {
    const answer = await ask("POST", "/admin/v1/accounts/alice/topups", body);
    assert.equal(answer.status, 400, body);
    assert.match(answer.json.error.message, /`usd`/, body);
    assert.ok(answer.json.error.remedy.length > 0, body);
  }
  assert.equal((await store.findAccount("alice"))?.balance, 0n);
  // The refusals did not use up the id.
  const right = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  assert.equal(right.status, 201);
});

test("row 38: a JSON number is refused, and the message shows how to write an amount", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const answer = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: 10, id: "pay_1" });
  assert.match(answer.json.error.remedy, /"10\.00"/);
});

test("row 38: an adjustment may have either sign, but has the same strict form", async (t) => {
  const { ask, store } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const path = "/admin/v1/accounts/alice/adjustments";
  for (const usd of MALFORMED_TEXTS.filter((text) => text !== "-5")) {
    const answer = await ask("POST", path, { usd, id: "adj_1", note: "test" });
    assert.equal(answer.status, 400, usd);
    assert.match(answer.json.error.message, /`usd`/, usd);
  }
  assert.equal((await ask("POST", path, { usd: "5.25", id: "adj_1", note: "goodwill" })).status, 201);
  assert.equal((await ask("POST", path, { usd: "-1.25", id: "adj_2", note: "typo" })).json.balance_usd, "4.00");
  assert.equal((await store.findAccount("alice"))?.balance, 4_000_000_000n);
});

test("a malformed payment id is 400, and the refusal names the field", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  for (const id of ["", " ", "a b", "a\nb", "{a}", "x".repeat(129), 7, null]) {
    const answer = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id });
    assert.equal(answer.status, 400, String(id));
    assert.match(answer.json.error.message, /`id`/);
  }
});
