import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { formatProblem, loadConfig } from "../../../src/config/config.ts";

// docs/failure-model.md row 79. The same secret everywhere a value may be, valid there or not.
const SECRET = "hunter2-hunter2-hunter2-hunter2-hunter2";

const everywhere = (value: string): string => `
listen: ${value}
admin: ${value}
admin_token: ${value}
store: ${value}
journal: {dir: ${value}, fsync: ${value}, bytes_max: ${value}}
sealing_keys: [${value}, ${value}]
default_plan: ${value}
trust_proxy: [${value}]
site: ${value}
body_bytes_max: ${value}
drain: {lame_duck: ${value}}
cors_origins: [${value}]
notices: {url: ${value}, secrets: [${value}], kinds: [${value}], balance_below: ${value}, card_ends_within: ${value}}
upstreams:
  east: {protocol: ${value}, base_url: ${value}, api_key: ${value}, headers: {x-a: ${value}}, tls: {ca_file: ${value}, cert_file: ${value}, key_file: ${value}}}
plans: {free: {}}
models:
  big-1:
    plans: [${value}]
    price: {input: ${value}, output: "1", tools: {t: ${value}}}
    context_tokens: ${value}
    capabilities: {thinking: ${value}}
    routes: [{upstream: ${value}, model: ${value}}]
groups: {use: {kind: ${value}, models: [${value}], multiplier: ${value}}}
`;

test("no problem shows the value of an environment variable", () => {
  const loaded = loadConfig({ text: everywhere("$" + "{WORD}"), env: { WORD: SECRET } });
  assert.ok("problems" in loaded && loaded.problems.length > 15);
  assert.ok(!loaded.problems.map(formatProblem).join("\n").includes("hunter2"));
});

test("no problem shows a secret that is written in place of a list or a mapping of secrets", () => {
  const text = `
sealing_keys: ${SECRET}
notices: {url: "https://hooks.example/", secrets: ${SECRET}}
traces: {endpoint: "http://127.0.0.1:4318/v1/traces", headers: ${SECRET}}
upstreams: {east: {protocol: chat, base_url: "https://m.example", headers: ${SECRET}, rules: [{header: {add: ${SECRET}}}]}}
`;
  const loaded = loadConfig({ text, env: {} });
  assert.ok("problems" in loaded);
  const said = loaded.problems.map(formatProblem).join("\n");
  for (const key of ["sealing_keys", "notices.secrets", "traces.headers", "upstreams.east.headers"])
    assert.match(said, new RegExp(`${key.replaceAll(".", "\\.")}: this value \\(not shown\\)`));
  assert.ok(!said.includes("hunter2"), said);
});

test("no problem shows the content of a secret's file", () => {
  const text = "admin_token: file:/run/token\nstore: file:/run/store\nsealing_keys: ['file:/run/key']\n";
  const loaded = loadConfig({ text, env: {}, readFile: () => `hunter2 ${SECRET}` });
  assert.ok("problems" in loaded);
  const said = loaded.problems.map(formatProblem).join("\n");
  assert.match(said, /admin_token: this value \(not shown\)/);
  assert.match(said, /store: this value \(not shown\)/);
  assert.ok(!said.includes("hunter2"));
});

test("a secret's file is read without its last newline, and a path from the environment is not shown", () => {
  const text = (token: string) => `admin_token: ${token}\n`;
  const failing = loadConfig({
    text: text('"$' + '{TOKEN_FILE}"'),
    env: { TOKEN_FILE: "file:/hunter2" },
    readFile: () => {
      throw Object.assign(new Error("no"), { code: "EACCES" });
    },
  });
  assert.ok("problems" in failing);
  const said = failing.problems.map(formatProblem).join("\n");
  assert.match(said, /cannot be read \(EACCES\)/);
  assert.ok(!said.includes("hunter2"));
});

test("settings are printed without their secrets", () => {
  const text = `
admin_token: file:/run/token
store: redis://u:${SECRET}@127.0.0.1/0
sealing_keys: [${SECRET}]
upstreams: {east: {protocol: chat, base_url: "https://m.example", api_key: ${SECRET}}}
plans: {free: {}}
models: {m: {plans: [free], price: {input: 1, output: 1}, context_tokens: 10, routes: [{upstream: east}]}}
groups: {use: {kind: pay_per_use, models: [m]}}
`;
  const loaded = loadConfig({ text, env: {}, readFile: () => `${SECRET}\n` });
  assert.ok("settings" in loaded, "problems" in loaded ? loaded.problems.map(formatProblem).join("\n") : "");
  assert.equal(loaded.settings.adminToken?.reveal(), SECRET);
  assert.ok(!inspect(loaded.settings, { depth: 20 }).includes("hunter2"));
  assert.ok(!JSON.stringify(loaded.settings).includes("hunter2"));
});
