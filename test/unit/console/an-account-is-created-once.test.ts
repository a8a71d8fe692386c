import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

test("an account is created with the requested plan, or with the default plan", async (t) => {
  const { ask } = await startConsole(t);
  const pro = await ask("POST", "/admin/v1/accounts", { name: "alice", plan: "pro" });
  assert.equal(pro.status, 201);
  assert.equal(pro.json.name, "alice");
  assert.equal(pro.json.plan, "pro");
  assert.match(pro.json.id, /^acct_[0-9A-Za-z]{10}$/);
  assert.equal(pro.json.balance_usd, "0.00");
  assert.ok(!Number.isNaN(Date.parse(pro.json.created_at)));
  const free = await ask("POST", "/admin/v1/accounts", { name: "bob" });
  assert.equal(free.json.plan, "free");
});

test("creating it again gives the existing account", async (t) => {
  const { ask } = await startConsole(t);
  const first = await ask("POST", "/admin/v1/accounts", { name: "alice", plan: "pro" });
  const again = await ask("POST", "/admin/v1/accounts", { name: "alice", plan: "pro" });
  assert.equal(again.status, 200);
  assert.deepEqual(again.json, first.json);
  const withoutPlan = await ask("POST", "/admin/v1/accounts", { name: "alice" });
  assert.equal(withoutPlan.status, 200);
  assert.equal(withoutPlan.json.plan, "pro");
});

test("creating it again with another plan is a conflict and changes nothing", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice", plan: "pro" });
  const other = await ask("POST", "/admin/v1/accounts", { name: "alice", plan: "free" });
  assert.equal(other.status, 409);
  assert.equal(other.json.error.code, "account_exists");
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.plan, "pro");
});

test("fifty parallel creations make one account", async (t) => {
  const { ask } = await startConsole(t);
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => ask("POST", "/admin/v1/accounts", { name: "alice" })),
  );
  assert.equal(answers.filter((answer) => answer.status === 201).length, 1);
  assert.equal(answers.filter((answer) => answer.status === 200).length, 49);
  assert.equal(new Set(answers.map((answer) => answer.json.id)).size, 1);
});

test("accounts are listed by name, page by page, and shown one by one", async (t) => {
  const { ask } = await startConsole(t);
  for (const name of ["carol", "alice", "bob"]) await ask("POST", "/admin/v1/accounts", { name });
  const first = await ask("GET", "/admin/v1/accounts?limit=2");
  assert.deepEqual(
    first.json.items.map((account: { name: string }) => account.name),
    ["alice", "bob"],
  );
  const second = await ask("GET", `/admin/v1/accounts?limit=2&cursor=${encodeURIComponent(first.json.next)}`);
  assert.deepEqual(
    second.json.items.map((account: { name: string }) => account.name),
    ["carol"],
  );
  assert.equal(second.json.next, null);
  const unknown = await ask("GET", "/admin/v1/accounts/dave");
  assert.equal(unknown.status, 404);
  assert.equal(unknown.json.error.code, "unknown_account");
});

test("a plan can be changed only to a configured one", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  assert.equal((await ask("PUT", "/admin/v1/accounts/alice/plan", { plan: "pro" })).json.plan, "pro");
  const typo = await ask("PUT", "/admin/v1/accounts/alice/plan", { plan: "Pr0" });
  assert.equal(typo.status, 400);
  assert.equal(typo.json.error.code, "unknown_plan");
  assert.match(typo.json.error.remedy, /Did you mean `pro`\?.*free, pro/);
  assert.equal((await ask("GET", "/admin/v1/accounts/alice")).json.plan, "pro");
  assert.equal((await ask("PUT", "/admin/v1/accounts/nobody/plan", { plan: "pro" })).status, 404);
});
