/**
 * ARCHITECTURE.md promise 11: status, identifier, cause, remedy and headers of refusals, in the form of each protocol's
 * clients.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { ERROR_ROWS } from "../../../../src/values/errors.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { exchange, RawSocket } from "../../../rig/raw-socket.ts";
import { type AskOptions, ask, assertAtRest, type Fields, PROTOCOL_LIST, pathOf } from "./asking.ts";

let here: GatewayHere;
let rich: TestAccount;
let poor: TestAccount;
before(async () => {
  here = await startGatewayHere();
  rich = await here.account();
  poor = await here.account({ usd: "0" });
});
after(() => here.close());

interface Case {
  readonly cause: keyof typeof ERROR_ROWS;
  readonly key: () => string | undefined;
  readonly fields?: Fields;
  readonly options?: AskOptions;
  readonly param?: string;
  /** What the message names in addition to the summary. */
  readonly names?: readonly string[];
}

const CASES: readonly Case[] = [
  { cause: "missing_key", key: () => undefined },
  { cause: "malformed_key", key: () => "sk-nothing" },
  { cause: "unknown_key", key: () => `sk-${"a".repeat(48)}` },
  { cause: "not_json", key: () => rich.key, options: { raw: "{]" } },
  { cause: "duplicate_field", key: () => rich.key, options: { raw: '{"model":"a","model":"b"}' }, param: "model" },
  { cause: "missing_field", key: () => rich.key, fields: { model: undefined }, param: "model" },
  { cause: "wrong_type", key: () => rich.key, fields: { stream: 1 }, param: "stream" },
  { cause: "unsupported_media_type", key: () => rich.key, options: { headers: { "content-type": "text/plain" } } },
  {
    cause: "unknown_model",
    key: () => rich.key,
    fields: { model: "Typed-Wrong" },
    names: ['"Typed-Wrong"', '"money"'],
  },
  { cause: "not_in_plan", key: () => rich.key, fields: { model: "pro-only" }, names: ['"pro-only"', '"money"'] },
  {
    cause: "group_mismatch",
    key: () => rich.key,
    fields: { model: "other-family" },
    names: ['"other-family"', '"money"'],
  },
  { cause: "insufficient_balance", key: () => poor.key, names: ['"money"'] },
  {
    cause: "unsupported_parameter",
    key: () => rich.key,
    fields: { service_tier: "priority" },
    param: "service_tier",
    names: ['"money"'],
  },
];

for (const protocol of PROTOCOL_LIST) {
  for (const one of CASES) {
    test(`${protocol}: ${one.cause}`, async () => {
      const reply = await ask(here, protocol, one.key(), one.fields, one.options);
      await assertExplained(reply, protocol, one);
    });
  }

  test(`${protocol}: a request rate above the limit is refused with whole seconds to wait`, async () => {
    const account = await here.account({ group: "limited-money" });
    for (let i = 0; i < 2; i++) assert.equal((await ask(here, protocol, account.key)).status, 200);
    const reply = await ask(here, protocol, account.key);
    assert.match(reply.headers.get("retry-after") ?? "", /^[1-9][0-9]*$/);
    await assertExplained(reply, protocol, { cause: "requests", key: () => account.key, names: ['"limited-money"'] });
    await assertAtRest(here, account);
  });
}

async function assertExplained(reply: Response, protocol: Protocol, one: Case): Promise<void> {
  const row = ERROR_ROWS[one.cause];
  assert.equal(reply.status, row.status);
  assert.equal(reply.headers.get("content-type"), "application/json");
  assert.equal(reply.headers.get("x-tollgate-origin"), "gateway");
  const requestId = reply.headers.get("x-request-id") ?? "";
  assert.match(requestId, /^req_[0-9A-Za-z]{24}$/);
  assert.equal(reply.headers.get("request-id"), protocol === "messages" ? requestId : null);
  assert.equal(reply.headers.get("x-should-retry"), row.status === 401 ? "false" : null);
  assert.equal(reply.headers.has("retry-after"), row.status === 429);
  const body = (await reply.json()) as Record<string, unknown> & { error: Record<string, unknown> };
  const { error } = body;
  assert.equal(error.cause, one.cause);
  assert.equal(error.remedy, row.remedy);
  const funds = protocol === "messages" && ["no_entitlement", "quota_used", "insufficient_balance"].includes(one.cause);
  assert.equal(error.type, funds ? "billing_error" : row.identifier);
  const message = String(error.message);
  for (const name of [row.summary, ...(one.names ?? [])]) assert.ok(message.includes(name), `${message} / ${name}`);
  if (protocol === "messages") {
    assert.deepEqual(Object.keys(body).sort(), ["error", "request_id", "type"]);
    assert.equal(body.type, "error");
    assert.equal(body.request_id, requestId);
    if (one.param) assert.ok(message.startsWith(`${one.param}: `), message);
    if (row.identifier === "model_not_found") assert.ok(message.startsWith("model_not_found: "));
  } else {
    assert.deepEqual(Object.keys(body), ["error"]);
    assert.equal(error.param, one.param ?? null);
    assert.equal(error.code, [401, 404, 429].includes(row.status) ? row.identifier : one.cause);
    assert.equal(error.request_id, requestId);
  }
}

test("a path with a doubled prefix gets the correct path, without mentioning a model, and costs nothing (row 17)", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const reply = await ask(here, protocol, rich.key, {}, { path: `/v1${pathOf(protocol)}` });
    assert.equal(reply.status, 404);
    assert.equal(reply.headers.get("x-tollgate-hint"), `use ${pathOf(protocol)}`);
    const { error } = (await reply.json()) as { error: { type: string; cause: string; message: string } };
    assert.deepEqual([error.type, error.cause], ["not_found_error", "doubled_prefix"]);
    assert.ok(error.message.includes(pathOf(protocol)));
    assert.doesNotMatch(error.message, /model/i);
    await assertAtRest(here, rich);
  }
});

test("row 43: a POST to the site with a key is 200 html with a hint, static bytes and no reflection", async () => {
  const pages = new Set<string>();
  for (const path of ["/", "/?<script>alert(1)</script>"]) {
    const reply = await ask(here, "chat", rich.key, {}, { path });
    assert.equal(reply.status, 200);
    assert.match(reply.headers.get("content-type") ?? "", /^text\/html/);
    assert.equal(reply.headers.get("x-content-type-options"), "nosniff");
    assert.match(reply.headers.get("x-tollgate-hint") ?? "", /^use .*\/v1\//);
    pages.add(await reply.text());
  }
  assert.equal(pages.size, 1);
  const visited = await fetch(`${here.url}/`);
  assert.equal(visited.headers.get("x-tollgate-hint"), null);
  assert.equal(await visited.text(), [...pages][0]);
});

test("row 43: a POST of a client whose address lacks /v1 is a 404 in the protocol's form, with the correct path", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const path = pathOf(protocol);
    const reply = await ask(here, protocol, rich.key, {}, { path: path.replace("/v1", "") });
    assert.equal(reply.status, 404);
    assert.equal(reply.headers.get("content-type"), "application/json");
    assert.equal(reply.headers.get("x-tollgate-hint"), `use ${path}`);
    const body = (await reply.json()) as { type?: string; error: { type: string; cause: string; message: string } };
    assert.deepEqual([body.error.type, body.error.cause], ["not_found_error", "unknown_path"]);
    assert.equal(body.type, protocol === "messages" ? "error" : undefined);
    assert.ok(body.error.message.includes(`Use ${path}: the base address of the client probably lacks /v1.`));
    await assertAtRest(here, rich);
  }
});

test("every 401 names the scheme (RFC 9110 section 11.6.1)", async () => {
  for (const protocol of PROTOCOL_LIST) {
    for (const key of [undefined, "sk-short", `${rich.key.slice(0, -1)}${rich.key.endsWith("0") ? "1" : "0"}`]) {
      const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const reply = await fetch(here.url + pathOf(protocol), { method: "POST", headers, body: "{}" });
      assert.equal(reply.status, 401);
      assert.equal(reply.headers.get("www-authenticate"), 'Bearer realm="tollgate"');
    }
  }
  const models = await fetch(`${here.url}/v1/models`);
  assert.deepEqual([models.status, models.headers.get("www-authenticate")], [401, 'Bearer realm="tollgate"']);
  const admin = await fetch(`${here.adminUrl}/admin/v1/accounts`);
  assert.deepEqual([admin.status, admin.headers.get("www-authenticate")], [401, 'Bearer realm="tollgate-admin"']);
  const good = await ask(here, "chat", rich.key, {});
  assert.equal(good.headers.get("www-authenticate"), null);
});

test("row 42: nothing of the admin listener answers on the public one", async () => {
  for (const path of ["/metrics", "/admin", "/admin/v1/accounts", "/debug/pprof", "/healthz", "/readyz"]) {
    const reply = await fetch(here.url + path, { headers: { authorization: "Bearer test-admin-token" } });
    assert.equal(reply.status, path === "/debug/pprof" ? 200 : 404, path);
    assert.doesNotMatch(await reply.text(), /tollgate_|accounts"/);
  }
  for (const path of ["/v1/metrics", "/v1/admin", "/v1/healthz"]) {
    assert.equal((await fetch(here.url + path)).status, 404);
  }
});

test("405 names the methods, HEAD is 200, a WebSocket is 426", async () => {
  for (const protocol of PROTOCOL_LIST) {
    const reply = await fetch(here.url + pathOf(protocol));
    assert.equal(reply.status, 405);
    assert.equal(reply.headers.get("allow"), "POST, HEAD");
    const head = await fetch(here.url + pathOf(protocol), { method: "HEAD" });
    assert.equal(head.status, 200);
  }
  const [upgrade] = await exchange(
    { port: here.port },
    "GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  assert.equal(upgrade?.status, 426);
  assert.match(upgrade?.body ?? "", /upgrade_required/);
});

test("413, 414, 417 and 431 are answered in the protocol's form, and the connection is closed", async () => {
  const head = (line: string, ...headers: string[]) => `${[line, "Host: x", ...headers].join("\r\n")}\r\n\r\n`;
  const key = `Authorization: Bearer ${rich.key}`;
  const json = "Content-Type: application/json";
  const cases: [number, string, string][] = [
    [413, "body_too_large", head("POST /v1/messages HTTP/1.1", key, json, "Content-Length: 1000000000000")],
    [414, "uri_too_long", head(`POST /v1/messages?${"x".repeat(9_000)} HTTP/1.1`, key, json, "Content-Length: 0")],
    [417, "expectation_failed", head("POST /v1/messages HTTP/1.1", key, json, "Expect: x", "Content-Length: 2")],
    [431, "headers_too_large", head("POST /v1/messages HTTP/1.1", key, `X-A: ${"x".repeat(17_000)}`)],
  ];
  for (const [status, cause, bytes] of cases) {
    const client = new RawSocket({ port: here.port }).send(bytes);
    const [reply] = await client.responsesUntilClosed();
    assert.equal(reply?.status, status);
    const body = JSON.parse(reply?.body ?? "") as {
      type: string;
      error: { type: string; cause: string };
      request_id: string;
    };
    assert.deepEqual([body.error.type, body.error.cause], ["invalid_request_error", cause]);
    assert.equal(reply?.headers.connection, "close");
    assert.match(reply?.headers["x-request-id"] ?? "", /^req_[0-9A-Za-z]{24}$/);
  }
  await assertAtRest(here, rich);
});

test("row 83: another origin gets no access-control header, and no answer to a preflight, unless configured", async () => {
  const origin = { origin: "https://evil.example" };
  const reply = await ask(here, "chat", rich.key, {}, { headers: origin });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get("access-control-allow-origin"), null);
  const preflight = await fetch(`${here.url}/v1/chat/completions`, {
    method: "OPTIONS",
    headers: { ...origin, "access-control-request-method": "POST" },
  });
  assert.equal(preflight.status, 405);
  assert.equal(preflight.headers.get("access-control-allow-origin"), null);

  const open = await startGatewayHere({ settings: (was) => ({ ...was, corsOrigins: ["https://app.example"] }) });
  try {
    const { key } = await open.account();
    const granted = await ask(open, "chat", key, {}, { headers: { origin: "https://app.example" } });
    assert.equal(granted.headers.get("access-control-allow-origin"), "https://app.example");
    const refused = await ask(open, "chat", undefined, {}, { headers: { origin: "https://app.example" } });
    assert.equal(refused.headers.get("access-control-allow-origin"), "https://app.example");
    const foreign = await ask(open, "chat", key, {}, { headers: origin });
    assert.equal(foreign.headers.get("access-control-allow-origin"), null);
  } finally {
    await open.close();
  }
});
