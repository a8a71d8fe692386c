import assert from "node:assert/strict";
import test from "node:test";
import { demoConfig, formatProblem, loadConfig } from "../../../src/config/config.ts";

const text = `listn: 127.0.0.1:1
heartbeat: soon
store: redis://127.0.0.1/0
upstreams:
  east: {protocol: chat, base_url: "https://models.example/v1?x=1", api_key: "\${NOT_SET}"}
plans: {free: {}}
models:
  big-1:
    plans: [fre]
    price: {input: 1.25}
    context_tokens: 1000
    routes: [{upstream: eest, weight: 0}]
groups:
  use: {kind: pay_per_use, models: [bug-1]}
`;

test("problems of form, references and the environment are reported together, in the order of the file", () => {
  const loaded = loadConfig({ file: "gate.yaml", text, env: {} });
  assert.ok("problems" in loaded);
  assert.deepEqual(
    loaded.problems.map((problem) => `${problem.line}: ${problem.key}`),
    [
      "1: listn",
      "1: sealing_keys",
      "2: heartbeat",
      "5: upstreams.east.base_url",
      "5: upstreams.east.api_key",
      "9: models.big-1.plans[0]",
      "10: models.big-1.price.output",
      "10: models.big-1.price.input",
      "12: models.big-1.routes[0].upstream",
      "12: models.big-1.routes[0].weight",
      "14: groups.use.models[0]",
    ],
  );
  assert.equal(
    loaded.problems.map(formatProblem)[0],
    'gate.yaml:1:1: listn: unknown key "listn" (did you mean "listen"?)',
  );
});

test("a token of an invalid form is not reported as missing", () => {
  const open = `admin: 0.0.0.0:1\nadmin_token: short\n${demoConfig({ upstreamUrl: "http://127.0.0.1:9", dataDir: "./data" }).replace(/^admin: .*\n/m, "")}`;
  const keysOf = (text: string) => {
    const loaded = loadConfig({ file: "gate.yaml", text, env: {} });
    assert.ok("problems" in loaded);
    return loaded.problems.map(({ key }) => key);
  };
  assert.deepEqual(keysOf(open), ["admin_token"]);
  // The schema refuses this one and removes it.
  assert.deepEqual(keysOf(open.replace("short", "1234567")), ["admin_token"]);
  assert.deepEqual(keysOf(open.replace("admin_token: short\n", "")), ["admin"]);
});

test("a file that two settings name is read once, so that both get the same content", () => {
  const two = `
upstreams:
  a: {protocol: chat, base_url: "http://127.0.0.1:9/v1", api_key: "file:/secret/key"}
  b: {protocol: chat, base_url: "http://127.0.0.1:8/v1", api_key: "file:/secret/key"}
plans: {free: {}}
models: {m: {plans: [free], price: {input: "0", output: "0"}, context_tokens: 9000, routes: [{upstream: a}]}}
groups: {g: {kind: pay_per_use, models: [m]}}
`;
  let reads = 0;
  const loaded = loadConfig({ text: two, env: {}, readFile: () => `key-${++reads}\n` });
  assert.ok(!("problems" in loaded));
  assert.deepEqual(
    [...loaded.settings.upstreams.values()].map(({ apiKey }) => apiKey?.reveal()),
    ["key-1", "key-1"],
  );
});
