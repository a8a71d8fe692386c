/** `GET /admin/v1/configuration`: all settings in force, and nothing that grants access anywhere. */
import assert from "node:assert/strict";
import test from "node:test";
import { asWritten, loadConfig } from "../../../../src/config/config.ts";
import { Reloads } from "../../../../src/console/reloads.ts";
import { HandClock } from "../../../e2e/protocol/whole/hand-clock.ts";
import { testConfig } from "../../../rig/config.ts";
import { startConsole } from "../running-console.ts";

const SECRET = "hush-hush-hush-hush-hush-hush-hush";

function settings() {
  const text = testConfig({ upstreamUrl: "http://127.0.0.1:9", dir: "unused" }, {
    admin_token: `${SECRET}-admin`,
    sealing_keys: [`${SECRET}-sealing`],
    store: `redis://user:${SECRET}@127.0.0.1:6379`,
    upstreams: { "up-chat": { api_key: `${SECRET}-upstream`, headers: { "x-secret": SECRET } } },
    notices: { url: `https://hooks.example/${SECRET}`, secrets: [`whsec_${Buffer.from(SECRET).toString("base64")}`] },
    traces: { endpoint: `https://collector.example/v1/traces`, headers: { authorization: SECRET } },
  } as never);
  const loaded = loadConfig({ file: "test.yaml", text, env: {} });
  assert.ok("settings" in loaded, JSON.stringify(loaded));
  return asWritten(loaded.settings);
}

test("settings, including defaults, have the names and units of the file, and *** for each secret", async (t) => {
  const reloads = new Reloads(new HandClock());
  const inForce = settings();
  const { ask } = await startConsole(t, { configuration: () => reloads.show(inForce, 7) });
  const { status, text, json } = await ask("GET", "/admin/v1/configuration");
  assert.equal(status, 200);
  assert.ok(!text.includes("hush"), text.slice(text.indexOf("hush") - 80, text.indexOf("hush") + 20));
  assert.ok(!text.includes(Buffer.from(SECRET).toString("base64").slice(0, 20)));
  assert.equal(json.generation, 7);
  assert.deepEqual(
    [json.settings.admin_token, json.settings.heartbeat, json.settings.client_gone_allowance],
    ["***", "10s", "0.50"],
  );
  assert.equal(json.settings.upstreams["up-chat"].api_key, "***");
  assert.equal(json.settings.groups.money.kind, "pay_per_use");
  assert.deepEqual([json.refused, json.waiting_for_restart], [null, []]);
});

test("an address is shown without its password, and a certificate without its content", async (t) => {
  const reloads = new Reloads(new HandClock());
  const inForce = settings();
  const site = `https://user:${SECRET}@site.example/path`;
  const long = `-----BEGIN CERTIFICATE-----${"A".repeat(900)}`;
  const changed = { ...inForce, site, tls: { ca_file: long } };
  const { ask } = await startConsole(t, { configuration: () => reloads.show(changed, 1) });
  const { text, json } = await ask("GET", "/admin/v1/configuration");
  assert.equal(json.settings.site, "https://***@site.example/path");
  assert.equal(json.settings.tls.ca_file, "-----BEGIN CERTIFICATE-----… (927 characters)");
  assert.ok(!text.includes("hush"));
});

test("the last refused reload is shown, with its time, until another one is refused", async (t) => {
  const clock = new HandClock();
  const reloads = new Reloads(clock);
  const inForce = settings();
  const { ask } = await startConsole(t, { configuration: () => reloads.show(inForce, 1) });
  const problem = { file: "tollgate.yaml", line: 3, column: 1, key: "listen", message: "must be an address" };
  clock.advance(1_000);
  reloads.refused([problem]);
  clock.advance(1_000);
  reloads.accepted({ restart: ["listen"] });
  const { json } = await ask("GET", "/admin/v1/configuration");
  assert.deepEqual(json.refused.problems, [problem]);
  assert.ok(json.refused.at < json.since);
  assert.deepEqual(json.waiting_for_restart, ["listen"]);
});
