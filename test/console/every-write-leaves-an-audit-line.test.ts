import assert from "node:assert/strict";
import test from "node:test";
import { ADMIN_TOKEN, startConsole } from "./running-console.ts";

test("every write leaves one line that says who, what, to whom and how much", async (t) => {
  const { ask, log } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/alice/plan", { plan: "pro" });
  const { id, key } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  await ask("PUT", `/admin/v1/keys/${id}/group`, { group: "cards" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "11.00", id: "pay_1" });
  await ask("POST", "/admin/v1/accounts/alice/adjustments", { usd: "-1.50", id: "adj_1", note: "typo" });
  await ask("POST", `/admin/v1/keys/${id}/revoke`);
  const facts = log.map(({ event, at, who, from, ...rest }) => {
    assert.equal(event, "audit");
    assert.equal(who, "admin");
    assert.equal(from, "127.0.0.1");
    assert.ok(!Number.isNaN(Date.parse(at as string)));
    return rest;
  });
  assert.deepEqual(facts, [
    { what: "account.create", target: "alice", plan: "free", outcome: "done" },
    { what: "account.create", target: "alice", plan: "free", outcome: "repeated" },
    { what: "account.set_plan", target: "alice", plan: "pro", outcome: "done" },
    { what: "key.create", target: "alice", group: "big", outcome: "done", key_id: id },
    { what: "key.set_group", target: id, group: "cards", outcome: "done" },
    { what: "topup", target: "alice", usd: "10.00", id: "pay_1", outcome: "done" },
    { what: "topup", target: "alice", usd: "11.00", id: "pay_1", outcome: "refused", cause: "id_used" },
    { what: "account.adjust", target: "alice", usd: "-1.50", id: "adj_1", note: "typo", outcome: "done" },
    { what: "key.revoke", target: id, outcome: "done" },
  ]);
  assert.ok(!JSON.stringify(log).includes(key));
  assert.ok(!JSON.stringify(log).includes(ADMIN_TOKEN));
});

test("reading leaves no line", async (t) => {
  const { ask, log } = await startConsole(t);
  await ask("GET", "/admin/v1/accounts");
  await ask("GET", "/metrics");
  await ask("GET", "/admin/v1/nothing");
  assert.deepEqual(log, []);
});
