/** `tollgate check` warns of a valid configuration that is probably a mistake. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { formatProblem, loadConfig, warningsOf } from "../../../src/config/config.ts";
import { selfSigned } from "../../rig/certificates.ts";

function warned(baseUrls: readonly string[]): readonly string[] {
  const upstreams = baseUrls.map((url, n) => `u${n}: {protocol: messages, base_url: "${url}"}`).join(", ");
  return warningsOfText(`upstreams: {${upstreams}}\n${served(baseUrls.map((_, n) => `u${n}`))}`);
}

function warningsOfText(text: string, nowMs = Date.now()): readonly string[] {
  const loaded = loadConfig({ text, env: {} });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return warningsOf(loaded.settings, nowMs);
}

/** Everything but the upstreams: models with a route to each of them, and a group. */
function served(upstreams: readonly string[], models: readonly string[] = ["m"], group = "m"): string {
  const routes = upstreams.map((name) => `{upstream: ${name}}`).join(", ");
  const model = `{plans: [free], price: {input: "0", output: "0"}, context_tokens: 9000, max_output_tokens: 90, routes: [${routes}]}`;
  return `
plans: {free: {}}
models: {${models.map((name) => `${name}: ${model}`).join(", ")}}
groups: {g: {kind: pay_per_use, models: ["${group}"]}}
`;
}

const EAST = 'upstreams: {east: {protocol: messages, base_url: "http://127.0.0.1:9/v1"}}\n';

test("a base_url that includes the endpoint is warned about", () => {
  assert.deepEqual(
    warned(["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/messages/", "http://127.0.0.1:9/responses"]),
    [
      "upstreams.u1.base_url includes the endpoint: requests will go to http://127.0.0.1:9/v1/messages/messages. Change it to http://127.0.0.1:9/v1",
      "upstreams.u2.base_url includes the endpoint: requests will go to http://127.0.0.1:9/responses/messages. Change it to http://127.0.0.1:9",
    ],
  );
  assert.deepEqual(warned(["http://127.0.0.1:9/v1", "http://127.0.0.1:9/some-responses/v1"]), []);
});

test("tls of an upstream with an http:// base_url is warned about, because it has no effect", () => {
  const said = (url: string, tls: string) =>
    warningsOfText(`upstreams: {u: {protocol: chat, base_url: "${url}", tls: ${tls}}}\n${served(["u"])}`);
  assert.deepEqual(said("http://models.internal/v1", "{server_name: models.internal}"), [
    "upstreams.u.tls has no effect, because its base_url is http://: everything sent there, including its api_key, can be read on the way. Change it to https://, or remove tls",
  ]);
  assert.deepEqual(said("https://models.internal/v1", "{server_name: models.internal}"), []);
  assert.deepEqual(said("http://models.internal/v1", "{}"), []);
});

test("a client certificate that has ended is warned about, because servers that ask for it refuse it", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-ended-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const { cert, key } = selfSigned();
  const [certFile, keyFile] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const tls = `{cert_file: "${certFile}", key_file: "${keyFile}"}`;
  const text = `upstreams: {u: {protocol: chat, base_url: "https://models.internal/v1", tls: ${tls}}}\n${served(["u"])}`;
  const endMs = new X509Certificate(cert).validToDate.getTime();
  assert.deepEqual(warningsOfText(text, endMs - 1), []);
  assert.deepEqual(warningsOfText(text, endMs), [
    `upstreams.u.tls.cert_file has a certificate that ended at ${new Date(endMs).toISOString()}: servers that ask for it refuse it. Renew it`,
  ]);
});

test("a traces endpoint without a path is warned about, because no collector listens there", () => {
  const said = (url: string) => warningsOfText(`traces: {endpoint: "${url}"}\n${EAST}${served(["east"])}`);
  for (const url of ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"])
    assert.deepEqual(said(url), [
      "traces.endpoint has no path: spans will go to http://127.0.0.1:4318/, but collectors receive them at /v1/traces. Change it to http://127.0.0.1:4318/v1/traces",
    ]);
  assert.deepEqual(said("http://127.0.0.1:4318/v1/traces"), []);
  assert.deepEqual(said("https://collector.example/otlp/v1/traces"), []);
});

test("a base_url without a version is warned about, unless it is known to need none", () => {
  const said = (of: string) => {
    const [protocol, url] = of.split(" ");
    return warningsOfText(`upstreams: {u: {protocol: ${protocol}, base_url: "${url}"}}\n${served(["u"])}`);
  };
  assert.deepEqual(said("chat http://127.0.0.1:8000"), [
    "upstreams.u.base_url has no version: requests will go to http://127.0.0.1:8000/chat/completions, but most servers have that path below /v1. If this one does too, change it to http://127.0.0.1:8000/v1",
  ]);
  assert.deepEqual(said("messages https://vendor.example/anthropic/"), [
    "upstreams.u.base_url has no version: requests will go to https://vendor.example/anthropic/messages, but most servers have that path below /v1. If this one does too, change it to https://vendor.example/anthropic/v1",
  ]);
  for (const good of [
    "chat http://127.0.0.1:8000/v1/",
    "chat https://vendor.example/api/paas",
    "chat https://vendor.example/v1beta/openai",
    "chat https://api.deepseek.com",
    "messages https://vendor.example/anthropic/v1",
    "messages https://vendor.example/v2",
  ]) {
    assert.deepEqual(said(good), [], good);
  }
});

test("a lame duck longer than the drain after it is warned about as possibly swapped", () => {
  const draining = (times: string) => warningsOfText(`drain: {${times}}\n${EAST}${served(["east"])}`);
  assert.deepEqual(draining("lame_duck: 10m, deadline: 5s"), [
    "drain.lame_duck (10m) is longer than drain.deadline (5s), which begins after it: new requests are accepted for 10m, and then running streams are cut after 5s. The two values may be swapped",
  ]);
  assert.deepEqual([...draining("lame_duck: 5s, deadline: 5s"), ...draining("deadline: 5s")], []);
});

/** The warnings about one model with a price, a route's cost and the groups that serve it. */
function priced(price: string, cost: string, groups = "g: {kind: pay_per_use, models: [m]}"): readonly string[] {
  return warningsOfText(`${EAST}
plans: {free: {}}
models: {m: {plans: [free], price: {${price}}, context_tokens: 9000, max_output_tokens: 90, routes: [{upstream: east}, {upstream: east, cost: {${cost}}}]}}
groups: {${groups}}
`);
}

test("a route that costs more than its requests earn is warned about", () => {
  const price = 'input: "1", output: "10"';
  const dear = 'input: "1.5", cached_input: "0.5", output: "12"';
  assert.deepEqual(priced(price, dear), [
    "models.m.routes[1].cost is above the model's price: input 1.50 above 1.00, output 12.00 above 10.00; such requests cost more than they earn",
  ]);
  const groups = (multiplier: string) =>
    `cheap: {kind: pay_per_use, models: [m], multiplier: "0.5"}, g: {kind: pay_per_use, models: ["*"], multiplier: "${multiplier}"}`;
  assert.deepEqual(priced(price, dear, groups("1.2")), [
    "models.m.routes[1].cost is above the model's price times 1.2, the multiplier of its most expensive group: input 1.50 above 1.00; such requests cost more than they earn",
  ]);
  assert.deepEqual(priced(price, dear, groups("1.5")), [], "one group may be cheaper on purpose");
  assert.deepEqual(priced(price, price), []);
  assert.deepEqual(priced('input: "0", output: "0"', dear), [], "a free model is not warned about");
  assert.deepEqual(priced(price, dear, "g: {kind: time_card, models: [m]}"), [], "cards pay for the model");
  assert.equal(priced(price, dear, "g: {kind: time_card, models: [m], fallback: money}").length, 1);
});

test("a price that looks like a price per token is warned about", () => {
  assert.deepEqual(priced('input: "0.00000125", output: "0.00001"', 'input: "0.000001", output: "0.00001"'), [
    'models.m.price.input is 0.00000125 US dollars per million tokens, which looks like a price per token: that would be "1.25"',
    'models.m.price.output is 0.00001 US dollars per million tokens, which looks like a price per token: that would be "10.00"',
    'models.m.routes[1].cost.input is 0.000001 US dollars per million tokens, which looks like a price per token: that would be "1.00"',
    'models.m.routes[1].cost.output is 0.00001 US dollars per million tokens, which looks like a price per token: that would be "10.00"',
  ]);
  assert.deepEqual(priced('input: "0.001", cached_input: "0.0001", output: "0"', 'input: "0", output: "0"'), []);
});

test("a model in no group is warned about", () => {
  assert.deepEqual(warningsOfText(EAST + served(["east"], ["big-1", "big-2", "small"], "big-1")), [
    "models.big-2 is in no group, so no key can use it; add it under groups.NAME.models",
    "models.small is in no group, so no key can use it; add it under groups.NAME.models",
  ]);
  assert.deepEqual(warningsOfText(EAST + served(["east"], ["big-1", "big-2"], "big-*")), []);
});

test("an upstream in no route is warned about", () => {
  const two =
    'upstreams: {east: {protocol: chat, base_url: "http://127.0.0.1:9/v1"}, west: {protocol: chat, base_url: "http://127.0.0.1:9/chat/completions"}}';
  assert.deepEqual(warningsOfText(two + served(["east"])), [
    "upstreams.west is in no route, so it is never used; add it under models.NAME.routes",
    "upstreams.west.base_url includes the endpoint: requests will go to http://127.0.0.1:9/chat/completions/chat/completions. Change it to http://127.0.0.1:9",
  ]);
  assert.deepEqual(warningsOfText(two.replace("/chat/completions", "/v1") + served(["east", "west"])), []);
});

test("a console address at which browsers do not keep the sign-in cookie is warned about", () => {
  const at = (url: string, rest = "") =>
    warningsOfText(`console: {public_url: "${url}"${rest}}\n${EAST}${served(["east"])}`);
  const said = (key: string) =>
    `${key} is http:// and not this machine: browsers keep the sign-in cookie only over https://, so nobody can sign in there. Use the front's https:// address`;
  assert.deepEqual(at("http://gate.example"), [said("console.public_url")]);
  assert.deepEqual(at("http://127.gate.example:8787"), [said("console.public_url")]);
  for (const good of ["https://gate.example", "http://localhost:8787", "http://127.0.0.2:8787", "http://[::1]:8787"]) {
    assert.deepEqual(at(good), [], good);
  }
  assert.deepEqual(at("http://gate.example", ", enabled: false"), [], "the pages are disabled");
  const oidc =
    "{issuer: https://login.example, client_id: gate, client_secret: secret, claim: groups, allowed: [gateway]}";
  const operator = `, operator: {public_url: "http://admin.example", oidc: ${oidc}}`;
  assert.deepEqual(at("https://gate.example", operator), [said("console.operator.public_url")]);
});

test("a port that browsers and fetch block is warned about", () => {
  const at = (addresses: string) => warningsOfText(`${addresses}\n${EAST}${served(["east"])}`);
  assert.deepEqual(at("listen: 127.0.0.1:6000\nadmin: 127.0.0.1:6667\nadmin_token: 0123456789abcdef"), [
    "listen has the port 6000, which browsers and fetch block: the console cannot be opened there, and SDKs that use fetch cannot connect. Use another port",
    "admin has the port 6667, which browsers and fetch block: the console cannot be opened there, and commands cannot reach the admin API. Use another port",
  ]);
  assert.deepEqual(at("listen: 127.0.0.1:0\nadmin: unix:/run/tollgate/6667"), []);
});

test("trusting every peer is warned about: anyone could claim any address, and with a trusted header any account", () => {
  const trusting = (blocks: string, rest = "") =>
    warningsOfText(`trust_proxy: [${blocks}]\n${rest}${EAST}${served(["east"])}`);
  const said = (block: string, account = "") =>
    `trust_proxy has ${block}, which matches every peer: anyone who connects can claim any address in X-Forwarded-For${account}. Use the front's own address`;
  assert.deepEqual(
    trusting('0.0.0.0/0, unix, "::/0"'),
    ["0.0.0.0/0", "::/0"].map((one) => said(one)),
  );
  assert.deepEqual(trusting("0.0.0.0/0", "console: {trusted_header: x-forwarded-user}\n"), [
    said("0.0.0.0/0", ", and in console.trusted_header any account"),
  ]);
  assert.deepEqual(
    trusting('127.0.0.1, 10.0.0.0/8, "fd00::/8", 10.0.0.0/10, "::ffff:10.0.0.0/104", "FD00::1/128", unix'),
    [],
  );
});
