// How an operator changes an account, what each step refuses, and what stays readable after the account is closed.
import assert from "node:assert/strict";
import test from "node:test";
import { LABELS_MAX } from "../../../src/store/records.ts";
import { startConsole } from "./running-console.ts";

const ALICE = "/admin/v1/accounts/alice";

test("a renamed account keeps id, funds and keys, and its old name is free", async (t) => {
  const { ask, log } = await startConsole(t);
  const { id } = (await ask("POST", "/admin/v1/accounts", { name: "alice" })).json;
  await ask("POST", "/admin/v1/accounts", { name: "carol" });
  await ask("POST", `${ALICE}/topups`, { usd: "10.00", id: "pay_1" });
  const key = (await ask("POST", `${ALICE}/keys`, { group: "big" })).json;
  const renamed = await ask("PUT", `${ALICE}/name`, { name: "bob" });
  assert.deepEqual(
    [renamed.status, renamed.json.id, renamed.json.name, renamed.json.balance_usd],
    [200, id, "bob", "10.00"],
  );
  assert.equal((await ask("GET", ALICE)).status, 404);
  assert.equal((await ask("PUT", `${ALICE}/name`, { name: "bob" })).json.error.code, "unknown_account");
  assert.equal((await ask("PUT", `/admin/v1/keys/${key.id}/name`, { name: "Laptop" })).json.account, "bob");
  const taken = await ask("PUT", "/admin/v1/accounts/bob/name", { name: "carol" });
  assert.deepEqual([taken.status, taken.json.error.code], [409, "account_exists"]);
  assert.equal((await ask("PUT", "/admin/v1/accounts/bob/name", { name: "no blanks" })).status, 400);
  const same = await ask("PUT", "/admin/v1/accounts/bob/name", { name: "bob" });
  assert.deepEqual([same.status, log.at(-1)?.outcome], [200, "repeated"]);
  assert.equal((await ask("POST", "/admin/v1/accounts", { name: "alice" })).status, 201);
  const names = (await ask("GET", "/admin/v1/accounts")).json.items.map(({ name }: { name: string }) => name);
  assert.deepEqual(names, ["alice", "bob", "carol"]);
});

test("labels are set and removed, accounts are found by them, and no log contains them", async (t) => {
  const { ask, log } = await startConsole(t);
  for (const name of ["alice", "bob", "carol"]) await ask("POST", "/admin/v1/accounts", { name });
  const label = async (name: string, labels: object) => ask("PUT", `/admin/v1/accounts/${name}/labels`, { labels });
  assert.deepEqual((await label("alice", { team: "red", "customer.no": "K-4711 ü" })).json.labels, {
    team: "red",
    "customer.no": "K-4711 ü",
  });
  assert.deepEqual((await label("alice", { team: "blue", "customer.no": null, none: null })).json.labels, {
    team: "blue",
  });
  await label("bob", { team: "red", constructor: "x" });
  const found = async (query: string) => {
    const { json } = await ask("GET", `/admin/v1/accounts?${query}`);
    return json.items.map(({ name }: { name: string }) => name);
  };
  assert.deepEqual(await found("label=team%3Dred"), ["bob"]);
  assert.deepEqual(await found("label=team"), ["alice", "bob"]);
  assert.deepEqual(await found("label=constructor"), ["bob"], "inherited properties are not labels");
  assert.deepEqual(await found("search=BLU"), ["alice"]);
  assert.deepEqual(await found("search=BLU&label=team%3Dred"), []);
  assert.deepEqual(await found("search=o&status=normal"), ["bob", "carol"]);
  for (const wrong of [
    { "a b": "x" },
    { [`x${"y".repeat(64)}`]: "x" },
    { a: "" },
    { a: "x".repeat(129) },
    { a: "x\ny" },
    { a: 7 },
    {},
  ]) {
    const refused = await label("alice", wrong);
    assert.deepEqual([refused.status, refused.json.error.code], [400, "malformed"], JSON.stringify(wrong));
  }
  assert.equal((await label("alice", { [`x${"y".repeat(63)}`]: "z".repeat(128) })).status, 200);
  const many = Object.fromEntries(Array.from({ length: LABELS_MAX }, (_, i) => [`l${i}`, "v"]));
  const refused = await label("alice", many);
  assert.deepEqual([refused.status, refused.json.error.code], [409, "too_many_labels"]);
  assert.equal((await label("carol", many)).status, 200);
  for (const text of ["red", "blue", "K-4711", "customer"]) assert.ok(!JSON.stringify(log).includes(text), text);
});

test("a suspended account can be resumed; a closed one accepts nothing, pays out its balance and stays readable", async (t) => {
  const { ask } = await startConsole(t);
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  await ask("POST", `${ALICE}/topups`, { usd: "10.00", id: "pay_1" });
  const key = (await ask("POST", `${ALICE}/keys`, { group: "big" })).json;
  assert.equal((await ask("POST", `${ALICE}/suspend`)).json.status, "suspended");
  assert.equal((await ask("GET", ALICE)).json.status, "suspended");
  assert.equal(
    (await ask("GET", `${ALICE}/keys`)).json.items[0].status,
    "normal",
    "the status of the key is unchanged",
  );
  assert.equal((await ask("POST", `${ALICE}/resume`)).json.status, "normal");
  assert.equal((await ask("POST", `${ALICE}/close`)).json.status, "closed");
  assert.deepEqual((await ask("POST", `${ALICE}/close`)).json.status, "closed");
  for (const [method, path, body] of [
    ["POST", "topups", { usd: "1.00", id: "pay_2" }],
    ["POST", "adjustments", { usd: "1.00", id: "adj_1", note: "n" }],
    ["POST", "keys", { group: "big" }],
    ["POST", "suspend"],
    ["POST", "resume"],
    ["PUT", "name", { name: "bob" }],
    ["PUT", "labels", { labels: { a: "b" } }],
    ["PUT", "plan", { plan: "pro" }],
    ["PUT", "limits", { budgets_usd: { day: "5.00" } }],
    ["PUT", "notify", { below_usd: "5.00" }],
  ] as const) {
    const refused = await ask(method, `${ALICE}/${path}`, body);
    assert.deepEqual([refused.status, refused.json.error.code], [409, "account_closed"], path);
  }
  assert.equal((await ask("POST", `/admin/v1/keys/${key.id}/rotate`, {})).json.error.code, "key_revoked");
  assert.equal((await ask("GET", `${ALICE}/keys`)).json.items[0].status, "revoked");
  const out = await ask("POST", `${ALICE}/adjustments`, { usd: "-10.00", id: "out", note: "paid out" });
  assert.deepEqual([out.status, out.json.balance_usd], [201, "0.00"]);
  assert.equal((await ask("POST", `${ALICE}/topups`, { usd: "10.00", id: "pay_1" })).json.repeated, true);
  assert.equal((await ask("GET", `${ALICE}/ledger`)).json.items.length, 2);
  assert.equal((await ask("GET", "/admin/v1/accounts?status=closed")).json.items[0].name, "alice");
  const again = await ask("POST", "/admin/v1/accounts", { name: "alice" });
  assert.deepEqual([again.status, again.json.status], [200, "closed"], "the name of a closed account is not reused");
  for (const path of ["suspend", "resume", "close"]) {
    assert.equal((await ask("POST", `/admin/v1/accounts/nobody/${path}`)).json.error.code, "unknown_account");
  }
});
