import assert from "node:assert/strict";
import test from "node:test";
import { run, startGateway } from "./captured-run.ts";

test("--json prints one line of JSON and nothing else, before or behind the command", async (t) => {
  const { tollgate } = await startGateway(t);
  const json = async (...argv: string[]) => {
    const ran = await tollgate(...argv);
    assert.equal(ran.status, 0, `${argv.join(" ")}: ${ran.err}`);
    assert.equal(ran.err, "");
    assert.match(ran.out, /^\{.*\}\n$/);
    return JSON.parse(ran.out);
  };
  const account = await json("account", "create", "alice", "--json");
  assert.equal(account.name, "alice");
  assert.deepEqual(await json("--json", "account", "show", "alice"), { ...account, entitlements: [] });
  assert.equal((await json("account", "list", "--json")).items[0].name, "alice");
  assert.equal((await json("account", "set-plan", "alice", "pro", "--json")).plan, "pro");
  const key = await json("key", "create", "--account", "alice", "--group", "big", "--json");
  assert.deepEqual(Object.keys(key).sort(), ["account", "created_at", "group", "id", "key", "status"]);
  assert.equal((await json("key", "list", "--account", "alice", "--json")).items.length, 1);
  assert.equal((await json("key", "set-group", key.id, "cards", "--json")).group, "cards");
  assert.equal((await json("key", "revoke", key.id, "--json")).status, "revoked");
  const topup = await json("topup", "--account", "alice", "--usd", "10", "--id", "pay_1", "--json");
  assert.equal(topup.balance_usd, "10.00");
  const taken = ["account", "adjust", "alice", "--usd", "-1", "--id", "adj_1", "--note", "n", "--json"];
  assert.equal((await json(...taken)).balance_usd, "9.00");
  assert.equal((await json("ledger", "show", "--account", "alice", "--json", "--limit", "1")).next, 1);
});

test("serve and check get their options and check's status is the exit status", async () => {
  const seen: unknown[] = [];
  const serve = async (options: unknown) => {
    seen.push(["serve", options]);
  };
  const check = async (options: unknown) => {
    seen.push(["check", options]);
    return 1;
  };
  assert.equal((await run(["serve"], { serve })).status, 0);
  assert.equal((await run(["serve", "--config", "a.yaml", "--json"], { serve })).status, 0);
  assert.equal((await run(["check", "--config", "b.yaml"], { check })).status, 1);
  assert.deepEqual(seen, [
    ["serve", { config: undefined, json: false }],
    ["serve", { config: "a.yaml", json: true }],
    ["check", { config: "b.yaml", json: false }],
  ]);
  const failed = await run(["serve"], { serve: () => Promise.reject(new Error("the port 8787 is taken")) });
  assert.deepEqual(failed, { status: 1, out: "", err: "tollgate: the port 8787 is taken\n" });
});
