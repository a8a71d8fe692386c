import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { Audit } from "../../../src/console/audit/audit.ts";
import type { ConsoleRoute } from "../../../src/console/routes/contract.ts";
import { systemClock } from "../../../src/values/time.ts";
import { ADMIN_TOKEN, startConsole } from "./running-console.ts";

test("every write leaves one line that says who did what, to whom and how much", async (t) => {
  const { ask, log } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("PUT", "/admin/v1/accounts/alice/plan", { plan: "pro" });
  const { id, key } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  await ask("PUT", `/admin/v1/keys/${id}/group`, { group: "cards" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "10.00", id: "pay_1" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "11.00", id: "pay_1" });
  await ask("POST", "/admin/v1/accounts/alice/adjustments", { usd: "-1.50", id: "adj_1", note: "typo" });
  await ask("PUT", `/admin/v1/keys/${id}/limits`, {
    budgets_usd: { day: "5.00" },
    concurrency: 3,
    addresses: ["192.0.2.7"],
  });
  await ask("PUT", `/admin/v1/keys/${id}/caps`, { requests_per_minute: 60 });
  await ask("PUT", "/admin/v1/accounts/alice/limits", { budgets_usd: { month: "50.00" } });
  await ask("PUT", "/admin/v1/accounts/alice/limits", { budgets_usd: { month: "50.0" } });
  await ask("POST", `/admin/v1/keys/${id}/suspend`);
  await ask("POST", `/admin/v1/keys/${id}/resume`);
  await ask("POST", `/admin/v1/keys/${id}/revoke`);
  await ask("PUT", "/admin/v1/accounts/alice/name", { name: "bob" });
  await ask("PUT", "/admin/v1/accounts/bob/labels", { labels: { team: "secret" } });
  await ask("POST", "/admin/v1/accounts/bob/suspend");
  await ask("POST", "/admin/v1/accounts/bob/resume");
  await ask("POST", "/admin/v1/accounts/bob/close");
  await ask("POST", "/admin/v1/accounts/bob/close");
  const who = `token:${createHash("sha256").update(ADMIN_TOKEN).digest("hex").slice(0, 8)}`;
  const requests = new Set(log.map(({ request }) => request));
  assert.equal(requests.size, log.length, "each has the id of its own request");
  const facts = log.map(({ event, at, who: named, from, request, ...rest }) => {
    assert.equal(event, "audit");
    assert.equal(named, who);
    assert.match(String(request), /^req_[0-9A-Za-z]{24}$/);
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
    {
      ...{ what: "key.set_limits", target: id, outcome: "done" },
      ...{ day: "5.00", concurrency: "3", addresses: "1 named" },
    },
    { what: "key.set_caps", target: id, requests_per_minute: "60", outcome: "done" },
    { what: "account.set_limits", target: "alice", month: "50.00", outcome: "done" },
    { what: "account.set_limits", target: "alice", month: "50.0", outcome: "repeated" },
    { what: "key.suspend", target: id, outcome: "done" },
    { what: "key.resume", target: id, outcome: "done" },
    { what: "key.revoke", target: id, outcome: "done" },
    { what: "account.rename", target: "alice", name: "bob", outcome: "done" },
    { what: "account.label", target: "bob", labels: "1", outcome: "done" },
    { what: "account.suspend", target: "bob", outcome: "done" },
    { what: "account.resume", target: "bob", outcome: "done" },
    { what: "account.close", target: "bob", outcome: "done" },
    { what: "account.close", target: "bob", outcome: "repeated" },
  ]);
  assert.ok(!JSON.stringify(log).includes(key));
  assert.ok(!JSON.stringify(log).includes(ADMIN_TOKEN));
});

test("a key that was typed as a name, an id or a note is in no line, neither logged nor kept in memory", async (t) => {
  const { ask, log } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  const { key } = (await ask("POST", "/admin/v1/accounts/alice/keys", { group: "big" })).json;
  const coded = Buffer.from(key).toString("base64");
  await ask("POST", `/admin/v1/accounts/${key}/topups`, { usd: "1.00", id: "pay_1" });
  await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id: key });
  await ask("POST", "/admin/v1/accounts/alice/adjustments", { usd: "1.00", id: "adj_1", note: `for ${key}` });
  await ask("POST", "/admin/v1/accounts/alice/adjustments", { usd: "1.00", id: "adj_2", note: `for ${coded}` });
  await ask("POST", "/admin/v1/accounts", { name: key });
  const shown = log.slice(2).map(({ what, target, id, note }) => [what, target, id, note]);
  assert.deepEqual(shown, [
    ["topup", "***", "pay_1", undefined],
    ["topup", "alice", "***", undefined],
    ["account.adjust", "alice", "adj_1", "***"],
    ["account.adjust", "alice", "adj_2", "***"],
    ["account.create", "***", undefined, undefined],
  ]);
  const remembered = JSON.stringify((await ask("GET", "/admin/v1/audit")).json);
  for (const text of [key, coded]) assert.ok(!(JSON.stringify(log) + remembered).includes(text));
});

test("reading leaves no line", async (t) => {
  const { ask, log } = await startConsole(t);
  await ask("GET", "/admin/v1/accounts");
  await ask("GET", "/metrics");
  await ask("GET", "/admin/v1/nothing");
  assert.deepEqual(log, []);
});

test("the lines are listed newest first, page by page, and show the outcome of each write", async (t) => {
  const { ask, log } = await startConsole(t);
  const made = await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", "/admin/v1/accounts", { name: "alice", plan: "pro" });
  await ask("POST", "/admin/v1/accounts/nobody/topups", { usd: "1.00", id: "pay_1" });
  const first = await ask("GET", "/admin/v1/audit?limit=3");
  assert.deepEqual(
    first.json.items.map(({ outcome, cause }: Record<string, unknown>) => [outcome, cause]),
    [
      ["refused", "unknown_account"],
      ["refused", "account_exists"],
      ["repeated", null],
    ],
  );
  const second = await ask("GET", `/admin/v1/audit?limit=3&cursor=${first.json.next}`);
  assert.equal(second.json.next, null);
  const [line] = second.json.items;
  assert.equal(line.request_id, made.headers.get("x-request-id"));
  assert.deepEqual(line.facts, { plan: "free" });
  assert.equal(log.length, 4, "reading leaves no line");
});

test("a limited number of lines is kept in memory, and all of them are logged", async () => {
  const logged: object[] = [];
  const audit = new Audit(systemClock, (line) => logged.push(line), { linesMax: 3 });
  const write = { what: "account.create", target: () => "alice", whenUnknown: "" };
  const asker = { who: "local", from: "127.0.0.1", requestId: "req_1" };
  const input = { params: {}, query: {}, body: {} };
  for (let i = 0; i < 5; i++) {
    await audit.run({ write } as unknown as ConsoleRoute, input, asker, async () => ({ status: 200, body: {} }));
  }
  const { items, next } = audit.page(Number.POSITIVE_INFINITY, 10);
  assert.deepEqual([items.map(({ seq }) => seq), next], [[5, 4, 3], null]);
  assert.equal(logged.length, 5);
});

test("a flood by owners, or by refused clients, evicts no more than half of the lines in memory", () => {
  const audit = new Audit(systemClock, () => {}, { linesMax: 6 });
  const note = (who: string) =>
    audit.note(
      { who, from: "127.0.0.1", requestId: "req_1", what: "x", target: "alice" },
      { outcome: "done", facts: {} },
    );
  for (const who of ["operator:session", "token:01234567", "local"]) note(who);
  for (let n = 0; n < 5; n++) for (const who of ["owner:alice:link", "nobody", "oidc"]) note(who);
  const remembered = () => audit.page(Number.POSITIVE_INFINITY, 10).items.map(({ seq }) => seq);
  assert.deepEqual(remembered(), [18, 17, 16, 3, 2, 1]);
  assert.deepEqual(
    audit.behind(2, 10).map(({ seq }) => seq),
    [3, 16, 17, 18],
  );
  for (let n = 0; n < 2; n++) note("local");
  assert.deepEqual(remembered(), [20, 19, 18, 17, 16, 3]);
  for (let n = 0; n < 6; n++) note("local");
  note("nobody");
  assert.deepEqual(remembered(), [27, 26, 25, 24, 23, 22]);
});

test("a process that forwards its lines logs and keeps none; one that receives them keeps them and logs nothing", () => {
  const logged: object[] = [];
  const parent = new Audit(systemClock, () => assert.fail("logged twice"));
  const worker = new Audit(systemClock, (line) => logged.push(line), { passOn: (entry) => parent.take(entry) });
  worker.note(
    { who: "owner:alice:link", from: "127.0.0.1", requestId: "req_1", what: "key.create", target: "key_1" },
    { outcome: "refused", cause: "key_limit", facts: {} },
  );
  assert.equal(logged.length, 1);
  assert.deepEqual(worker.behind(0, 10), []);
  const [{ at, ...line } = { at: "" }] = parent.behind(0, 10);
  assert.ok(Date.parse(at) > 0);
  assert.deepEqual(line, {
    seq: 1,
    request_id: "req_1",
    who: "owner:alice:link",
    from: "127.0.0.1",
    what: "key.create",
    target: "key_1",
    outcome: "refused",
    cause: "key_limit",
    facts: {},
  });
});
