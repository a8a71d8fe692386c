import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { startGatewayHere } from "../../rig/gateway.ts";
import { run, startGateway } from "./captured-run.ts";

test("--json prints one line of JSON and nothing else, wherever the option is given", async (t) => {
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
  assert.deepEqual(await json("--json", "account", "show", "alice"), { ...account, budgets: [], entitlements: [] });
  assert.equal((await json("account", "list", "--json")).items[0].name, "alice");
  assert.equal((await json("account", "set-plan", "alice", "pro", "--json")).plan, "pro");
  const key = await json("key", "create", "--account", "alice", "--group", "big", "--json");
  assert.deepEqual(Object.keys(key).sort(), [
    "account",
    "caps",
    "created_at",
    "expires_at",
    "group",
    "id",
    "key",
    "limits",
    "name",
    "previous_until",
    "status",
  ]);
  assert.equal((await json("key", "list", "--account", "alice", "--json")).items.length, 1);
  assert.equal((await json("key", "set-group", key.id, "cards", "--json")).group, "cards");
  assert.equal((await json("key", "rename", key.id, "Laptop", "--json")).name, "Laptop");
  assert.match((await json("key", "expire", key.id, "30d", "--json")).expires_at, /Z$/);
  assert.match((await json("key", "rotate", key.id, "--json")).key, /^sk-/);
  assert.equal((await json("key", "suspend", key.id, "--json")).status, "suspended");
  assert.equal((await json("key", "resume", key.id, "--json")).status, "normal");
  assert.equal((await json("key", "revoke", key.id, "--json")).status, "revoked");
  const topup = await json("topup", "--account", "alice", "--usd", "10", "--id", "pay_1", "--json");
  assert.equal(topup.balance_usd, "10.00");
  const taken = ["account", "adjust", "alice", "--usd", "-1", "--id", "adj_1", "--note", "n", "--json"];
  assert.equal((await json(...taken)).balance_usd, "9.00");
  assert.deepEqual((await json("account", "label", "alice", "team=red", "--json")).labels, { team: "red" });
  assert.equal((await json("account", "rename", "alice", "alice.b", "--json")).name, "alice.b");
  assert.equal((await json("account", "rename", "alice.b", "alice", "--json")).name, "alice");
  assert.equal((await json("account", "suspend", "alice", "--json")).status, "suspended");
  assert.equal((await json("account", "resume", "alice", "--json")).status, "normal");
  assert.equal((await json("account", "close", "alice", "--json")).status, "closed");
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

test("--version --json reports the version of this program, and of the running gateway if there is one", async (t) => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  const here = { version, build: "checkout", node: process.versions.node };
  for (const words of [
    ["--version", "--json"],
    ["--json", "-V"],
    ["-V", "--data", "/nowhere", "--json"],
  ]) {
    const ran = await run(words, { env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:2" } });
    assert.deepEqual([ran.status, JSON.parse(ran.out)], [0, { ...here, running: null }], words.join(" "));
  }
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const env = { TOLLGATE_ADMIN_URL: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: "test-admin-token" };
  const { running } = JSON.parse((await run(["--version", "--json"], { env })).out);
  assert.deepEqual(running, { ...here, generation: 1 });
  const refused = await run(["--version", "--json"], { env: { ...env, TOLLGATE_ADMIN_TOKEN: "another-token" } });
  assert.deepEqual([refused.status, JSON.parse(refused.out).running], [0, null]);
  assert.deepEqual(await run(["health"], { env }), { status: 0, out: "alive\n", err: "" });
  assert.deepEqual(await run(["health", "--json"], { env }), { status: 0, out: '{"alive":true}\n', err: "" });
  const clients = await run(["account", "list"], { env: { ...env, TOLLGATE_ADMIN_URL: gateway.url } });
  assert.equal(clients.status, 1);
  assert.match(
    clients.err,
    /is a gateway's address for clients, not its admin address\.\nIs that the gateway's admin address\?/,
  );
  const away = await run(["health"], { env: { TOLLGATE_ADMIN_URL: "http://127.0.0.1:2" } });
  assert.equal(away.status, 1);
  assert.match(away.err, /^No gateway answers at /);
});
