/** What a thread reports, packed and copied, is what the process itself would have loaded: settings, problems and digests. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { demoConfig } from "../../../../src/config/config.ts";
import { type AttemptInput, attempt, type LoadAttempt } from "../../../../src/config/thread/attempt.ts";
import { packSettings } from "../../../../src/config/thread/packed.ts";
import { attemptOf, replyOf } from "../../../../src/config/thread/reply.ts";
import { attemptInThread } from "../../../../src/config/thread/thread.ts";
import { Secret } from "../../../../src/values/secret.ts";
import type { Settings } from "../../../../src/values/settings.ts";
import { selfSigned } from "../../../rig/certificates.ts";
import { type Changes, testConfig } from "../../../rig/config.ts";
import { largeConfig } from "../../../rig/large-config.ts";
import { awaited } from "../watched.ts";

const BAD = new URL("../bad/", import.meta.url);
const example = readFileSync(new URL("../../../../tollgate.example.yaml", import.meta.url), "utf8");
const ENV = {
  TOLLGATE_ADMIN_TOKEN: "admin-token-0123456789",
  TOLLGATE_SEALING_KEY: "0123456789abcdef0123456789abcdef",
  EAST_KEY: "east-credential",
  WEST_KEY: "west-credential",
  TOLLGATE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, "w").toString("base64")}`,
  EMPTY: "",
};

function inputOf(text: string): AttemptInput {
  return { file: "tollgate.yaml", env: ENV, seen: new Map([["tollgate.yaml", { text }]]), readOnce: new Map() };
}

/** With the texts of secrets, which comparisons do not see. */
function revealed(value: unknown): unknown {
  if (value instanceof Secret) return { secret: value.reveal() };
  if (value instanceof Map) return new Map([...value].map(([key, member]) => [key, revealed(member)]));
  if (value instanceof Set || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(revealed);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, revealed(member)]));
}

function comparable({ loaded, tried }: LoadAttempt): unknown {
  if ("problems" in loaded) return { problems: loaded.problems, tried };
  const { settings, copy } = loaded;
  return { settings: revealed(settings), text: copy.text, files: copy.files, tried };
}

/** What arrives from a thread, without one. */
function arrived(text: string): LoadAttempt {
  return attemptOf(structuredClone(replyOf(attempt(inputOf(text)))), text);
}

const dir = mkdtempSync(join(tmpdir(), "tollgate-thread-"));
after(() => rmSync(dir, { recursive: true }));
const { cert, key } = selfSigned();
writeFileSync(join(dir, "cert.pem"), cert);
writeFileSync(join(dir, "key.pem"), key);
writeFileSync(join(dir, "api-key"), "a-credential-in-a-file\n");

const oidc = { issuer: "https://login.example", client_id: "tollgate", client_secret: "a-client-secret" };
const tls = { ca_file: join(dir, "cert.pem"), cert_file: join(dir, "cert.pem"), key_file: join(dir, "key.pem") };
const places = { upstreamUrl: "https://models.example/v1", dir };

/** Settings of every kind that the example leaves out. */
const MORE: Readonly<Record<string, Changes>> = {
  "a store with sentinels": {
    store: "rediss-sentinel://user:word@s1:26379,s2/tollgate",
    redis: { tls, sentinel: { username: "watcher", password: "hush" } },
  },
  "a cluster": { store: "redis-cluster://user:word@10.0.0.1:7000,[::1]:6379", workers: 2 },
  "secrets and certificates in files": {
    upstreams: { "up-chat": { api_key: `file:${join(dir, "api-key")}`, tls, headers: { "x-token": "a-token" } } },
  },
  "sign-in, traces and rules": {
    console: {
      enabled: true,
      oidc: { ...oidc, claim: "email" },
      operator: { oidc: { ...oidc, claim: "groups", allowed: ["admins"] } },
    },
    traces: { endpoint: "https://collector.example/v1/traces", headers: { authorization: "Bearer a-token" } },
    groups: {
      money: {
        rules: [
          { set: { "metadata.user_id": "us", tags: [1, { deep: null }] } },
          { header: { add: { "x-team": "blue" }, remove: ["openai-beta"] } },
        ],
      },
    },
  },
};

const GOOD: Readonly<Record<string, string>> = {
  "the example": example,
  "the demonstration": demoConfig({ upstreamUrl: "http://127.0.0.1:9", dataDir: dir }),
  "thirty models": largeConfig({ dir, models: 30, groups: 5 }),
  ...Object.fromEntries(Object.entries(MORE).map(([what, change]) => [what, testConfig(places, change)])),
};

for (const [what, text] of Object.entries(GOOD)) {
  test(`${what} arrives as it was loaded`, () => {
    const here = attempt(inputOf(text));
    assert.ok("settings" in here.loaded, JSON.stringify(here.loaded));
    assert.deepEqual(comparable(arrived(text)), comparable(here));
  });
}

test("what several routes share is shared by them on arrival", () => {
  const { loaded } = arrived(example);
  assert.ok("settings" in loaded);
  const big = loaded.settings.catalog.models.get("big-1");
  // A route without a cost has its model's price, and prices are recognized by that.
  assert.equal(big?.routes[1]?.cost, big?.price);
});

const BROKEN: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    readdirSync(BAD)
      .filter((name) => name.endsWith(".yaml"))
      .map((name) => [name, readFileSync(new URL(name, BAD), "utf8")]),
  ),
  "an open bracket": `${example}a: [1, 2\nb: 1\n`,
  "an open quote": `${example}a: "x\nb: 1\n`,
  "more problems than are shown": largeConfig({ dir, models: 501, groups: 1 }).replaceAll(
    "    context_tokens",
    "    tokens",
  ),
  "a missing file": testConfig(places, { upstreams: { "up-chat": { api_key: "file:/nonexistent/key" } } }),
};

test("every broken configuration arrives with the problems that the process finds", () => {
  assert.ok(Object.keys(BROKEN).length > 100);
  for (const [what, text] of Object.entries(BROKEN)) {
    const here = attempt(inputOf(text));
    assert.ok("problems" in here.loaded && here.loaded.problems.length > 0, what);
    assert.deepEqual(comparable(arrived(text)), comparable(here), what);
  }
});

for (const what of ["the example", "secrets and certificates in files", "an open bracket", "a missing file"]) {
  const text = { ...GOOD, ...BROKEN }[what] as string;
  test(`a thread is given ${what} and reports what the process loads`, async () => {
    const { result } = attemptInThread(inputOf(text), text);
    assert.deepEqual(comparable((await awaited(result)) as LoadAttempt), comparable(attempt(inputOf(text))));
  });
}

test("what a thread of another build reports is not used", () => {
  const reply = replyOf(attempt(inputOf(example)));
  assert.throws(() => attemptOf({ ...reply, build: "another" }, example), /another/);
});

test("settings with a value that would arrive as something else are not packed", () => {
  class Price {}
  for (const value of [new Price(), () => {}, Object.create(null)]) {
    assert.throws(() => packSettings({ catalog: new Map([["a", { value }]]) } as unknown as Settings), /settings hold/);
  }
});
