/**
 * docs/failure-model.md rows 26, 27, 28, 32: whatever is not exactly a key gets 401 in every place, and is never shown.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { assertAtRest, bodyOf } from "./asking.ts";

let here: GatewayHere;
let owner: TestAccount;
let other: TestAccount;
before(async () => {
  here = await startGatewayHere();
  owner = await here.account();
  other = await here.account();
});
after(() => here.close());

const BODY = JSON.stringify(bodyOf("chat"));

/** Sends raw bytes, so that no HTTP library can correct them. */
async function send(headers: readonly string[], target = "/v1/chat/completions"): Promise<string> {
  const head = [`POST ${target} HTTP/1.1`, "Host: gateway.test", "Content-Type: application/json", ...headers];
  const bytes = Buffer.concat([
    Buffer.from(`${head.join("\r\n")}\r\nContent-Length: ${BODY.length}\r\n\r\n`, "utf8"),
    Buffer.from(BODY),
  ]);
  const [reply] = await exchange({ port: here.port }, bytes);
  assert.ok(reply);
  const cause = reply.status === 200 ? "ok" : (JSON.parse(reply.body) as { error: { cause: string } }).error.cause;
  if (reply.status === 401) assert.equal(reply.headers["x-should-retry"], "false");
  return `${reply.status} ${cause}`;
}

test("row 26: only Bearer, one space and a correctly formed key are accepted", async () => {
  const { key } = owner;
  const refused: [string, string][] = [
    [`Authorization: Basic ${Buffer.from(`user:${key}`).toString("base64")}`, "missing_key"],
    ["Authorization: Bearer", "missing_key"],
    [`Authorization: ${key}`, "missing_key"],
    [`Authorization: Bearer  ${key}`, "malformed_key"],
    [`Authorization: Bearer ${key}, Bearer ${key}`, "malformed_key"],
    [`Authorization: Bearer \u200b${key}`, "malformed_key"],
    [`Authorization: Bearer ${key.replace("sk-", "\uff53\uff4b-")}`, "malformed_key"],
    [`Authorization: Bearer ${key.slice(0, -1)}`, "malformed_key"],
    [`Authorization: Bearer ${key}x`, "malformed_key"],
    [`Authorization: Bearer ${key.toUpperCase()}`, "malformed_key"],
    [`x_api_key: ${key}`, "missing_key"],
  ];
  for (const [header, cause] of refused) assert.equal(await send([header]), `401 ${cause}`, header.slice(0, 40));
  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    assert.equal(await send([`Authorization: ${scheme} ${key}`]), "200 ok");
  }
  assert.equal(await send([`x-api-key: ${key}`]), "200 ok");
});

test("row 27: two different keys conflict; equal ones, and a foreign key beside a gateway key, do not", async () => {
  const bearer = `Authorization: Bearer ${owner.key}`;
  assert.equal(await send([bearer, `x-api-key: ${other.key}`]), "401 conflicting_keys");
  assert.equal(await send([bearer, bearer]), "401 conflicting_keys");
  assert.equal(await send([`x-api-key: ${owner.key}`, `x-api-key: ${owner.key}`]), "401 conflicting_keys");
  assert.equal(await send([bearer, `x-api-key: ${owner.key}`]), "200 ok");
  assert.equal(await send([bearer, "x-api-key: sk-ant-something-else"]), "200 ok");
  assert.equal(await send(["Authorization: Bearer another-service", `x-api-key: ${owner.key}`]), "200 ok");
});

test("row 28: a key in the query, a cookie or the body is not used as the key, and not logged", async () => {
  assert.equal(await send([], `/v1/chat/completions?api_key=${owner.key}`), "401 missing_key");
  assert.equal(await send([`Cookie: api_key=${owner.key}`]), "401 missing_key");
  const body = JSON.stringify(bodyOf("chat", { api_key: owner.key }));
  const reply = await fetch(`${here.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  assert.equal(reply.status, 401);
  assert.ok(!(await reply.text()).includes(owner.key));
  assert.ok(!JSON.stringify(here.log).includes(owner.key));
});

test("row 32: text that could act as a name in the store is refused by its form", async () => {
  for (const text of ["sk-}{a:victim}", "sk-*", "sk-../../x", `sk-${"a".repeat(4_000)}`, `sk-${"*".repeat(48)}`]) {
    assert.equal(await send([`x-api-key: ${text}`]), "401 malformed_key", text.slice(0, 20));
  }
  // Above the header limit the answer is about the headers, never "key missing" because of a truncated view.
  const [reply] = await exchange(
    { port: here.port },
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-api-key: sk-${"a".repeat(1_000_000)}\r\n\r\n`,
  );
  assert.equal(reply?.status, 431);
  await assertAtRest(here, owner);
  await assertAtRest(here, other);
});

test("row 31: an unknown, a malformed and a revoked key differ only in the documented cause", async () => {
  const revoked = await here.account();
  await here.store.revokeKey(revoked.tag, revoked.keyId);
  const shapes: string[] = [];
  for (const key of [`sk-${"a".repeat(48)}`, "sk-short", revoked.key, `${owner.key.slice(0, 13)}${"a".repeat(38)}`]) {
    const reply = await fetch(`${here.url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: BODY,
    });
    const body = (await reply.json()) as { error: object };
    shapes.push(
      JSON.stringify([reply.status, [...reply.headers.keys()].sort(), Object.keys(body), Object.keys(body.error)]),
    );
    assert.ok(!JSON.stringify(body).includes(owner.tag));
  }
  assert.equal(new Set(shapes).size, 1, shapes.join("\n"));
});
