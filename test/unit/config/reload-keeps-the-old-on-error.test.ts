/**
 * docs/failure-model.md rows 84 and G4: a bad file leaves the running configuration unchanged, and the secrets read at
 * the start, too.
 */
import assert from "node:assert/strict";
import { readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import test from "node:test";
import { diffSettings, keepUntilRestart, loadConfig, removedEntries } from "../../../src/config/config.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { Settings } from "../../../src/values/settings.ts";
import { bad, better, good, watched } from "./watched.ts";

test("a changed file results in new settings, and a bad one only in problems", async (t) => {
  const { file, settings, problems, look } = await watched(t);
  writeFileSync(`${file}.new`, better);
  await look(2);
  assert.equal(settings.length + problems.length, 0, "another file in the folder is not a change");
  renameSync(`${file}.new`, file);
  await look(2);
  assert.deepEqual(
    settings.map((next) => next.heartbeatMs),
    [7_000],
  );
  writeFileSync(file, bad);
  await look(4);
  assert.equal(settings.length, 1);
  assert.equal(problems.length, 1, "the problem is reported once");
  assert.equal(problems[0]?.[0]?.key, "hartbeat");
});

test("touching the file changes nothing", async (t) => {
  const { file, settings, problems, look } = await watched(t);
  utimesSync(file, 1, 1);
  await look(3);
  assert.equal(settings.length + problems.length, 0);
});

test("reload reads immediately, even an unchanged file, and a missing file is a problem", async (t) => {
  const { file, settings, problems, watch, look } = await watched(t);
  watch.reload();
  assert.equal(settings.length, 1);
  rmSync(file);
  watch.reload();
  assert.match(problems[0]?.[0]?.message ?? "", /ENOENT/);
  await look(3);
  assert.equal(problems.length, 1, "a file that is still missing is not reported again");
  writeFileSync(file, better);
  await look(2);
  assert.equal(settings.at(-1)?.heartbeatMs, 7_000);
  watch.close();
  watch.reload();
  assert.deepEqual([settings.length, problems.length], [2, 1], "nothing is reported after close");
});

test("an exception while loading or in the consumer of the settings is reported as a problem, and the watch continues", async (t) => {
  const env = {
    get BROKEN(): string {
      throw new Error("a defect");
    },
  };
  const defects = ["another defect"];
  const { file, settings, problems, watch, look } = await watched(t, {
    env,
    onSettings() {
      const defect = defects.pop();
      if (defect) throw new Error(defect);
    },
  });
  writeFileSync(file, `${good}heartbeat: "\${BROKEN}"\n`);
  await look(3);
  watch.reload();
  writeFileSync(file, better);
  await look(2);
  watch.reload();
  assert.deepEqual(
    problems.map(([problem]) => problem?.message),
    [
      "the configuration cannot be loaded: a defect",
      "the configuration cannot be loaded: a defect",
      "the configuration cannot be loaded: another defect",
    ],
  );
  assert.equal(settings.length, 2);
});

const settingsOf = (text: string): Settings => {
  const loaded = loadConfig({ text, env: {} });
  assert.ok("settings" in loaded, JSON.stringify(loaded));
  return loaded.settings;
};
const KEY = "0123456789abcdef0123456789abcdef";
const redis = (password: string, more = ""): Settings =>
  settingsOf(good.replace(/store: .*/, `store: redis://:${password}@h/0\nsealing_keys: [${KEY}]\n${more}`));

test("settings that need a restart are named", () => {
  const old = settingsOf(good);
  assert.deepEqual(diffSettings(old, settingsOf(better)), { restart: [] });
  const moved = settingsOf(good.replace("8787", "8789").replace("./data", "./other"));
  assert.deepEqual(diffSettings(old, moved), { restart: ["listen", "store", "journal"] });
  assert.deepEqual(diffSettings(redis("a"), redis("b")), { restart: ["store"] }, "a password alone");
});

test("certificates of redis.tls need no restart, unless the store changes, too", () => {
  const started = redis("a");
  const { store } = started;
  assert.ok(store.kind === "redis");
  const by = (ca: string, url = store.url): Settings => ({
    ...started,
    store: { ...store, url, tls: { ca, identity: undefined, serverName: undefined } },
  });
  assert.deepEqual(diffSettings(by("old"), by("new")), { restart: [] });
  assert.deepEqual(keepUntilRestart(by("old"), by("new")), by("new"));
  const moved = by("new", new Secret("rediss://other/0"));
  assert.deepEqual(diffSettings(by("old"), moved), { restart: ["store"] });
  assert.deepEqual(keepUntilRestart(by("old"), moved), by("old"));
  assert.deepEqual(diffSettings(started, by("new")), { restart: ["store"] }, "with TLS, and without it");
  assert.deepEqual(keepUntilRestart(started, by("new")), started);
});

test("names that keys and accounts may still use and that a reload removes are reported", () => {
  const of = (text: string) => settingsOf(text);
  const before = of(good);
  assert.deepEqual(removedEntries(before, before), []);
  const [group] = before.catalog.groups.keys();
  const [model] = before.catalog.models.keys();
  const [plan] = before.catalog.plans;
  const without = {
    ...before,
    catalog: { ...before.catalog, groups: new Map(), models: new Map(), plans: new Set<string>(), cards: new Map() },
  };
  const gone = removedEntries(before, without);
  const [card] = before.catalog.cards.keys();
  assert.ok(card);
  const names = [`groups.${group}`, `models.${model}`, `plans.${plan}`, `cards.${card}`];
  for (const name of names) assert.ok(gone.includes(name), name);
  assert.deepEqual(removedEntries(without, before), []);
});

test("settings that need a restart keep their values, the secrets read at the start included", () => {
  const more = (n: number) => `admin_token: token-of-the-admin-${n}
trust_proxy: [10.0.0.${n}/32]
cors_origins: ["https://${n}.example"]
body_bytes_max: ${n}MiB
log: {level: ${n === 1 ? "info" : "debug"}}
workers: ${n}
traces: {endpoint: "http://127.0.0.1:4318/v1/traces", headers: {x-token: "secret-${n}"}}
heartbeat: ${n}s
`;
  const started = redis("a", more(1));
  const next = redis("b", more(2));
  const { restart } = diffSettings(started, next);
  assert.deepEqual(restart, [
    "admin_token",
    "store",
    "trust_proxy",
    "body_bytes_max",
    "cors_origins",
    "workers",
    "log",
    "traces",
  ]);
  const kept = keepUntilRestart(started, next);
  assert.deepEqual(diffSettings(started, kept), { restart: [] });
  assert.equal(kept.heartbeatMs, 2_000, "all other settings are new");
  const otherKeys = { ...next, sealingKeys: [] };
  assert.ok(diffSettings(started, otherKeys).restart.includes("sealing_keys"));
  assert.deepEqual(keepUntilRestart(started, otherKeys).sealingKeys, started.sealingKeys);
});

test("the settings that need a restart are those that the documentation lists", () => {
  const old = { store: { kind: "embedded", dir: "data" } } as Settings;
  const other = { kind: "embedded", dir: "other" };
  const all = diffSettings(old, new Proxy(old, { get: (_, key) => (key === "store" ? other : 1) })).restart;
  const text = readFileSync(new URL("../../../docs/configuration.md", import.meta.url), "utf8");
  const [, listed = ""] = /wait for a restart`\), by name: (.+?)\.\n/s.exec(text) ?? [];
  const named = [...listed.matchAll(/`([a-z_.]+)`/g)].map(([, name]) => name);
  assert.deepEqual(named.sort(), [...all, "redis.sentinel"].sort());
});
