/**
 * The settings in force are shown with the names and units of the file: loaded again, they result in the same settings.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { asWritten, formatProblem, loadConfig } from "../../../src/config/config.ts";
import { Secret } from "../../../src/values/secret.ts";
import type { Settings } from "../../../src/values/settings.ts";

const ENV = {
  TOLLGATE_ADMIN_TOKEN: "admin-token-0123456789",
  TOLLGATE_SEALING_KEY: "0123456789abcdef0123456789abcdef",
  EAST_KEY: "east-credential",
  WEST_KEY: "west-credential",
  TOLLGATE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "w").toString("base64")}`,
};

const example = readFileSync("tollgate.example.yaml", "utf8");
/** Settings that the example has in comments or leaves at their defaults. */
const rich = `
listen: unix:/run/tollgate.sock
admin: "[::1]:8788"
console:
  enabled: false
  operator:
    public_url: https://admin.example
    oidc: {issuer: "https://login.example", client_id: a, client_secret: s3cr3t, claim: groups, allowed: [ops]}
overload: {in_flight_max: 7, memory: 1GiB}
body_bytes_max: 1000000
client_gone_allowance: "0.000000001"
cors_origins: [https://chat.example]
traces: {endpoint: "https://collector.example/v1/traces", headers: {authorization: t0ken}, sample: 0.5, propagate: [east]}
notices: {url: "http://hooks.example/x", secrets: ["\${TOLLGATE_WEBHOOK_SECRET}"], kinds: [books_off], allow_http: true}
upstreams:
  east:
    protocol: responses
    base_url: https://models.example/v1
    stateful: true
    unknown_members: pass
    prompt_cache: client
    headers: {x-team: gateway}
    client_gone_grace: 0s
    rules: [{drop: [metadata.user_id]}, {header: {remove: [x-a]}}, {header: {add: {x-b: "1"}}}]
plans: {free: {}, pro: {}}
default_plan: pro
models:
  big-1:
    plans: [free]
    price: {input: "0.000000003", output: 10, tools: {web_search: "0.01"}, options: {search_parameters: "0.025"}, above_tokens: [{tokens: 9, input: 1, output: 2}]}
    context_tokens: 4000
    media_tokens: {image_max: 9, file: 2}
    rules:
      - {set: {temperature: 0.25, "text.verbosity": low}}
      - {default: {seed: null}, protocol: responses}
      - {system: {text: "Be kind.", at: start}}
      - {strip_attribution: true}
    routes: [{upstream: east, answers_as: ["*"], capabilities: {efforts: []}}]
groups:
  use: {kind: pay_per_use, models: ["*"], multiplier: "0.85", limits: {tokens_per_minute: 5, per_key: true}}
  timed: {kind: time_card, models: [big-1], fallback: money}
cards: {day: {plan: pro, group: timed, lasts: 36h, starts: after_previous}}
`;

function settingsOf(text: string): Settings {
  const loaded = loadConfig({ text, env: ENV });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return loaded.settings;
}

/** The shown settings as a file, with the secrets filled in. */
function fileOf(settings: Settings): string {
  return JSON.stringify(revealed(asWritten(settings)));
}

function revealed(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(revealed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, revealed(one)]));
}

for (const [name, text] of Object.entries({ "the example": example, "the rest": rich })) {
  test(`${name}: loading the shown settings results in the same settings`, () => {
    const settings = settingsOf(text);
    assert.deepEqual(settingsOf(fileOf(settings)), settings);
  });
}

test("amounts, durations, sizes and addresses are shown as users write them", () => {
  const written = asWritten(settingsOf(rich));
  assert.deepEqual(
    [written.listen, written.admin, written.client_gone_allowance, written.body_bytes_max, written.drain],
    ["unix:/run/tollgate.sock", "[::1]:8788", "0.000000001", "1000000B", { lame_duck: "5s", deadline: "10m" }],
  );
  const text = JSON.stringify(written);
  for (const part of ['"output":"10.00"', '"multiplier":"0.85"', '"lasts":"36h"']) assert.ok(text.includes(part), part);
});

test("a store on Redis is shown by its address, without user and password", () => {
  const sealed = rich.replace("client_gone", 'sealing_keys: ["$' + '{TOLLGATE_SEALING_KEY}"]\nclient_gone');
  for (const [store, shown] of [
    ["rediss://me:hush@redis.example:6380/3", "rediss://***@redis.example:6380/3"],
    ["redis://127.0.0.1:6379", "redis://127.0.0.1:6379"],
    ["rediss-cluster://:hush@10.0.0.1:1,[::1]", "rediss-cluster://***@10.0.0.1:1,[::1]:6379"],
    ["rediss-sentinel://10.0.0.1/name", "rediss-sentinel://10.0.0.1:26379/name"],
    ["redis-sentinel://10.0.0.1,10.0.0.2:9/name", "redis-sentinel://10.0.0.1:26379,10.0.0.2:9/name"],
  ] as const) {
    assert.equal(asWritten(settingsOf(`store: "${store}"\n${sealed}`)).store, shown);
  }
});

test("settings of a Redis store that its address cannot hold are shown, too, and can be loaded again", () => {
  const sealed = rich.replace("client_gone", 'sealing_keys: ["$' + '{TOLLGATE_SEALING_KEY}"]\nclient_gone');
  for (const [store, redis] of [
    ["rediss://10.0.0.1:6379/0", { tls: { server_name: "redis.example" } }],
    ["redis-sentinel://10.0.0.1:26379/name", { sentinel: { username: "w", password: "hush" } }],
    ["rediss-sentinel://10.0.0.1:26379/name", { tls: {}, sentinel: { password: "hush" } }],
  ] as const) {
    const settings = settingsOf(`store: "${store}"\nredis: ${JSON.stringify(redis)}\n${sealed}`);
    const text = fileOf(settings);
    assert.deepEqual(settingsOf(text).store, settings.store);
  }
  for (const store of ["embedded:./data", "redis://10.0.0.1", "redis-sentinel://10.0.0.1/name"])
    assert.equal(asWritten(settingsOf(`store: "${store}"\n${sealed}`)).redis, undefined, store);
});
