import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

test("row 39: the same payment id counts once, sent twice in a row or fifty times in parallel", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const payment = { usd: "10.00", id: "pay_1" };
  const first = await ask("POST", "/admin/v1/accounts/alice/topups", payment);
  assert.equal(first.status, 201);
  assert.deepEqual(first.json, { account: "alice", id: "pay_1", usd: "10.00", balance_usd: "10.00", repeated: false });
  const again = await ask("POST", "/admin/v1/accounts/alice/topups", payment);
  assert.equal(again.status, 200);
  assert.equal(again.json.repeated, true);
  assert.equal(again.json.balance_usd, "10.00");
  const parallel = await Promise.all(
    Array.from({ length: 50 }, () => ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id: "pay_2" })),
  );
  assert.equal(parallel.filter((answer) => answer.status === 201).length, 1);
  assert.equal(parallel.filter((answer) => answer.status === 200).length, 49);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.balance_usd, "11.00");
});

test("the same id with another amount is a conflict and changes nothing", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  const other = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.01", id: "pay_1" });
  assert.equal(other.status, 409);
  assert.equal(other.json.error.code, "id_used");
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.balance_usd, "10.00");
});

test("an adjustment never takes more than the balance, and a top-up never exceeds the maximum of an account", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id: "pay_1" });
  const take = { usd: "-1.000000001", id: "adj_1", note: "too much" };
  const below = await ask("POST", "/admin/v1/accounts/alice/adjustments", take);
  assert.equal(below.status, 409);
  assert.equal(below.json.error.code, "out_of_range");
  const above = await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "9000000", id: "pay_2" });
  assert.equal(above.status, 409);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.balance_usd, "1.00");
});

test("money for an account that does not exist is 404", async (t) => {
  const { ask } = await startConsole(t);
  assert.equal((await ask("POST", "/admin/v1/accounts/nobody/topups", { usd: "1.00", id: "p" })).status, 404);
  const adjustment = { usd: "1.00", id: "p", note: "n" };
  assert.equal((await ask("POST", "/admin/v1/accounts/nobody/adjustments", adjustment)).status, 404);
  assert.equal((await ask("GET", "/admin/v1/accounts/nobody/ledger")).status, 404);
});

test("the ledger shows every movement, oldest first, page by page", async (t) => {
  const { ask } = await startConsole(t);
  const { id } = (await ask("POST", "/admin/v1/accounts", { name: "alice" })).json;
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  await ask("POST", "/admin/v1/accounts/alice/adjustments", {
    usd: "-2.50",
    id: "adj_1",
    note: '{"refund": "by card"}',
  });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id: "pay_2" });
  const first = await ask("GET", "/admin/v1/accounts/alice/ledger?limit=2");
  assert.equal(first.json.items.length, 2);
  const [topup, adjustment] = first.json.items;
  assert.equal(topup.seq, 1);
  assert.equal(topup.kind, "topup");
  assert.equal(topup.usd, "10.00");
  assert.equal(topup.credit, id);
  assert.equal(topup.reference, "pay_1");
  assert.equal(adjustment.kind, "adjust");
  assert.equal(adjustment.balance_usd, "7.50");
  assert.equal(adjustment.note, '{"refund": "by card"}');
  const second = await ask("GET", `/admin/v1/accounts/alice/ledger?limit=2&after=${first.json.next}`);
  assert.deepEqual(
    second.json.items.map((line: { reference: string }) => line.reference),
    ["pay_2"],
  );
  assert.equal(second.json.next, null);
});

test("a payment id that looks like a request id is in the ledger as it was sent", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  // A UUID without its dashes, as many payment systems use it.
  const id = "4f9d8a6e2c1b47d0a3e5f60718293a4b";
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id });
  const [line] = (await ask("GET", "/admin/v1/accounts/alice/ledger")).json.items;
  assert.equal(line.reference, id);
});
