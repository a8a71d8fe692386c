/**
 * The warnings of `tollgate check` are logged by a gateway that starts with or reloads such a configuration, each
 * warning once.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { spawnGateway } from "../../../rig/gateway.ts";
import { lines } from "../workers/rig.ts";

test("at the start all warnings are logged, after a reload only the new ones", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-doubtful-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const text = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: embedded:${dir}/data
sealing_keys: [${"k".repeat(40)}]
upstreams: {east: {protocol: chat, base_url: "http://127.0.0.1:9", api_key: unused}}
plans: {free: {}}
models:
  m: {plans: [free], price: {input: "1", output: "1"}, context_tokens: 1000, max_output_tokens: 100, routes: [{upstream: east}]}
groups: {g: {kind: pay_per_use, models: [m]}}
`;
  const gateway = await spawnGateway(text);
  t.after(() => gateway.stop());
  const reload = async (next: string, count: number) => {
    writeFileSync(gateway.file, next);
    gateway.child.kill("SIGHUP");
    await gateway.line('"event":"config_reloaded"', count);
  };
  await reload(`heartbeat: 11s\n${text}`, 1);
  await reload(`drain: {lame_duck: 1m, deadline: 1s}\n${text}`, 2);
  await gateway.line('"event":"config_doubtful"', 2);
  const said = lines(gateway).filter(({ event }) => /^config_/.test(String(event)));
  assert.deepEqual(
    said.map(({ event, level }) => [event, level]),
    [
      ["config_doubtful", "warn"],
      ["config_reloaded", "info"],
      ["config_reloaded", "info"],
      ["config_doubtful", "warn"],
    ],
  );
  const [first, second] = said.filter(({ event }) => event === "config_doubtful").map(({ warnings }) => warnings);
  assert.match(JSON.stringify(first), /^\["upstreams\.east\.base_url has no version:[^"]*"\]$/);
  assert.match(JSON.stringify(second), /^\["drain\.lame_duck \(1m\)[^"]*"\]$/);
});
