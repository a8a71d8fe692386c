import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig } from "../../../src/config/config.ts";

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

test("faults of form, of reference and of the environment are told together, in the order of the file", () => {
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
