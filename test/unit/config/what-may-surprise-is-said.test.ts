/** A configuration that is good and most likely not meant: `tollgate check` says so. */
import assert from "node:assert/strict";
import test from "node:test";
import { formatProblem, loadConfig, warningsOf } from "../../../src/config/config.ts";

function warned(baseUrls: readonly string[]): readonly string[] {
  const upstreams = baseUrls.map((url, n) => `u${n}: {protocol: messages, base_url: "${url}"}`).join(", ");
  return warningsOfText(`upstreams: {${upstreams}}\n${served(baseUrls.map((_, n) => `u${n}`))}`);
}

function warningsOfText(text: string): readonly string[] {
  const loaded = loadConfig({ text, env: {} });
  if ("problems" in loaded) assert.fail(loaded.problems.map(formatProblem).join("\n"));
  return warningsOf(loaded.settings);
}

/** All but the upstreams: models with a route to each of them, and a group. */
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

test("a base_url with the endpoint in it is said to be asked for it twice", () => {
  assert.deepEqual(
    warned(["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/messages/", "http://127.0.0.1:9/responses"]),
    [
      "upstreams.u1.base_url has the endpoint in it: requests will go to http://127.0.0.1:9/v1/messages/messages. Make it http://127.0.0.1:9/v1",
      "upstreams.u2.base_url has the endpoint in it: requests will go to http://127.0.0.1:9/responses/messages. Make it http://127.0.0.1:9",
    ],
  );
  assert.deepEqual(warned(["http://127.0.0.1:9/v1", "http://127.0.0.1:9/some-responses", "http://127.0.0.1:9"]), []);
});

test("a model that no group serves is said to be nobody's", () => {
  assert.deepEqual(warningsOfText(EAST + served(["east"], ["big-1", "big-2", "small"], "big-1")), [
    "models.big-2 is in no group: no key can use it; name it under groups.NAME.models",
    "models.small is in no group: no key can use it; name it under groups.NAME.models",
  ]);
  assert.deepEqual(warningsOfText(EAST + served(["east"], ["big-1", "big-2"], "big-*")), []);
});

test("an upstream that no route uses is said to be asked by nobody", () => {
  const two =
    'upstreams: {east: {protocol: chat, base_url: "http://127.0.0.1:9"}, west: {protocol: chat, base_url: "http://127.0.0.1:9/chat/completions"}}';
  assert.deepEqual(warningsOfText(two + served(["east"])), [
    "upstreams.west is in no route: it is never asked; name it under models.NAME.routes",
    "upstreams.west.base_url has the endpoint in it: requests will go to http://127.0.0.1:9/chat/completions/chat/completions. Make it http://127.0.0.1:9",
  ]);
  assert.deepEqual(warningsOfText(two.replace("/chat/completions", "") + served(["east", "west"])), []);
});

test("an address of the console at which no browser keeps a sign-in is said to let nobody in", () => {
  const at = (url: string, rest = "") =>
    warningsOfText(`console: {public_url: "${url}"${rest}}\n${EAST}${served(["east"])}`);
  const said = (key: string) =>
    `${key} is http:// and not this machine: browsers keep the cookie of a sign-in over https:// only, so nobody can sign in there. Name the front's https:// address`;
  assert.deepEqual(at("http://gate.example"), [said("console.public_url")]);
  assert.deepEqual(at("http://127.gate.example:8787"), [said("console.public_url")]);
  for (const good of ["https://gate.example", "http://localhost:8787", "http://127.0.0.2:8787", "http://[::1]:8787"]) {
    assert.deepEqual(at(good), [], good);
  }
  assert.deepEqual(at("http://gate.example", ", enabled: false"), [], "there are no pages");
  const oidc =
    "{issuer: https://login.example, client_id: gate, client_secret: secret, claim: groups, allowed: [gateway]}";
  const operator = `, operator: {public_url: "http://admin.example", oidc: ${oidc}}`;
  assert.deepEqual(at("https://gate.example", operator), [said("console.operator.public_url")]);
});

test("a trust in everybody is said to let anybody claim any address, and any account where a front names them", () => {
  const trusting = (blocks: string, rest = "") =>
    warningsOfText(`trust_proxy: [${blocks}]\n${rest}${EAST}${served(["east"])}`);
  const said = (block: string, account = "") =>
    `trust_proxy has ${block}, which is everybody: whoever connects may claim any address in X-Forwarded-For${account}. Name the front's own address`;
  assert.deepEqual(
    trusting('0.0.0.0/0, unix, "::/0", 10.0.0.0/0'),
    ["0.0.0.0/0", "::/0", "10.0.0.0/0"].map((one) => said(one)),
  );
  assert.deepEqual(trusting("0.0.0.0/0", "console: {trusted_header: x-forwarded-user}\n"), [
    said("0.0.0.0/0", ", and in console.trusted_header any account"),
  ]);
  assert.deepEqual(trusting('127.0.0.1, 10.0.0.0/8, "fd00::/8", 10.0.0.0/10, unix'), []);
});
