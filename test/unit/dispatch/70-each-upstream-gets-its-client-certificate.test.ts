/**
 * docs/failure-model.md row 70: each upstream gets its own client certificate, from files of the configuration that a
 * reload reads again.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import type { TLSSocket } from "node:tls";
import { formatProblem, loadConfig } from "../../../src/config/config.ts";
import { createDispatcher } from "../../../src/dispatch/dispatcher.ts";
import type { Settings } from "../../../src/values/settings.ts";
import { systemClock } from "../../../src/values/time.ts";
import { ask, assertAnswered, listening, refusalIn, route } from "./rig.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-identity-"));
test.after(() => rmSync(dir, { recursive: true }));

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { cwd: dir, stdio: "ignore" });
}

const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

function makeCertificate(name: string, altName: string): void {
  writeFileSync(join(dir, `${name}.ext`), `subjectAltName=${altName}\n`);
  openssl("req", ...EC, "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
  const signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", `${name}.ext`, "-days", "2"];
  openssl("x509", "-req", "-in", `${name}.csr`, "-out", `${name}.pem`, ...signing);
}

openssl("req", "-x509", ...EC, "-subj", "/CN=ca", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem");
makeCertificate("server", "DNS:models.internal");
makeCertificate("east", "DNS:east.example");
makeCertificate("west", "DNS:west.example");

/** A server that accepts only clients with a certificate of our CA; gives its base URL and the names of its clients. */
async function demanding(t: TestContext): Promise<{ base: string; seen: string[] }> {
  const seen: string[] = [];
  const read = (file: string) => readFileSync(join(dir, file));
  const server = createServer(
    { key: read("server.key"), cert: read("server.pem"), ca: read("ca.pem"), requestCert: true },
    (request, response) => {
      seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
      response.setHeader("content-type", "application/json").end("{}");
    },
  );
  return { base: await listening(t, server, "https", "localhost"), seen };
}

function config(base: string, ...tls: string[]): string {
  const upstreams = tls.map((text, at) => `  up-${at}: {protocol: chat, base_url: "${base}", tls: ${text}}\n`).join("");
  return `upstreams:\n${upstreams}plans: {free: {}}
models:
  big-1: {plans: [free], price: {input: "1", output: "10"}, context_tokens: 1000, routes: [{upstream: up-0}]}
groups: {use: {kind: pay_per_use, models: [big-1]}}
`;
}

function settingsOf(text: string): Settings {
  const loaded = loadConfig({ text, env: {} });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return loaded.settings;
}

const at = (name: string) => join(dir, name);
const identity = (cert: string, key = cert) =>
  `{ca_file: ${at("ca.pem")}, server_name: models.internal, cert_file: ${at(`${cert}.pem`)}, key_file: ${at(`${key}.key`)}}`;

test("70: each upstream gets its own certificate, on connections of its own", async (t) => {
  const { base, seen } = await demanding(t);
  const anonymous = `{ca_file: ${at("ca.pem")}, server_name: models.internal}`;
  const elsewhere = `{ca_file: ${at("ca.pem")}}`;
  const settings = settingsOf(config(base, identity("east"), identity("west"), anonymous, elsewhere));
  const { upstreams } = settings;
  const dispatcher = createDispatcher({ upstreams, clock: systemClock, random: () => 0.5, onWarning() {} });
  t.after(() => dispatcher.close());
  const asked = (name: string) => dispatcher.run(ask([route(name)], { stream: false }));
  assertAnswered(await asked("up-0"));
  assertAnswered(await asked("up-1"));
  assert.deepEqual(seen, ["east", "west"]);
  for (const name of ["up-2", "up-3"]) {
    assert.equal(refusalIn(await asked(name)).cause, "upstream_unavailable", name);
  }
  assert.deepEqual(
    seen,
    ["east", "west"],
    "no request is sent to a server that fails verification or refuses the certificate",
  );
});

test("70: a reload uses what the files contain now, and reconnects only if they have changed", async (t) => {
  const { base, seen } = await demanding(t);
  for (const ending of ["pem", "key"]) copyFileSync(at(`east.${ending}`), at(`turned.${ending}`));
  const text = config(base, identity("turned"), identity("west"));
  const first = settingsOf(text);
  const dispatcher = createDispatcher({
    upstreams: first.upstreams,
    clock: systemClock,
    random: () => 0.5,
    onWarning() {},
  });
  t.after(() => dispatcher.close());
  const asked = async () => assertAnswered(await dispatcher.run(ask([route("up-0")], { stream: false })));
  await asked();
  for (const ending of ["pem", "key"]) copyFileSync(at(`west.${ending}`), at(`turned.${ending}`));
  dispatcher.replace(settingsOf(text).upstreams);
  await asked();
  assert.deepEqual(seen, ["east", "west"]);
});

test("70: a key that does not belong to the certificate is a problem of the configuration, and is not shown", () => {
  const loaded = loadConfig({ text: config("https://models.example/v1", identity("east", "west")), env: {} });
  assert.ok("problems" in loaded);
  const [problem, ...more] = loaded.problems;
  assert.deepEqual(more, []);
  assert.equal(problem?.key, "upstreams.up-0.tls.key_file");
  assert.match(problem?.message ?? "", /private key of the certificate in cert_file/);
});

test("an unreadable certificate among others is a problem of the configuration, because those after it would be missing", () => {
  const whole = readFileSync(at("ca.pem"), "utf8");
  const damaged = whole.replace("\nM", "\nN");
  const problemsOf = (text: string) => {
    writeFileSync(at("bundle.pem"), text);
    const loaded = loadConfig({ text: config("https://models.example/v1", `{ca_file: ${at("bundle.pem")}}`), env: {} });
    return "problems" in loaded ? loaded.problems.map(({ key, message }) => `${key}: ${message}`) : [];
  };
  assert.deepEqual(problemsOf(`${whole}${readFileSync(at("ca.key"), "utf8")}# of the other one\n${whole}`), []);
  for (const text of [damaged, whole + damaged + whole, whole + whole.slice(0, -30), "-----BEGIN CERTIFICATE-----\n"]) {
    const [problem, ...more] = problemsOf(text);
    assert.match(
      problem ?? "",
      /^upstreams\.up-0\.tls\.ca_file: .*PEM file with a CERTIFICATE block, and each of them must be readable/,
    );
    assert.deepEqual(more, []);
  }
});
