/**
 * The API of owners: no answer contains operator-only data, and another account's name, keys and codes are not found.
 * New routes are covered automatically; for a write that is not listed here the schema of its answer is checked.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { OwnScope } from "../../../../../src/console/owner/own-store.ts";
import { ownerRoutes } from "../../../../../src/console/owner/routes.ts";
import type { ConsoleRoute } from "../../../../../src/console/routes/contract.ts";
import { newCode } from "../../../../../src/values/code.ts";
import type { GatewayHere, TestAccount } from "../../../../rig/gateway.ts";
import { codes, furnish, spend, startOwnerGateway } from "./furnished-account.ts";
import { admin } from "./signed-in.ts";

/** Operator-only members: what a request cost, what it earned, which upstream answered it, notes about an account. */
const OPERATORS = /^(?:cost_usd|absorbed_usd|margin_usd|upstream|upstreams|attempts|labels|outcomes|account_id|who)$/;

const PARTS = { settings: { support: {} }, catalog: () => ({ groups: new Map() }) } as unknown as Parameters<
  typeof ownerRoutes
>[0];
const ROUTES = ownerRoutes(PARTS, new OwnScope());

/** A session of an account by a sign-in link. */
async function askerFor(gateway: GatewayHere, account: string) {
  const { link } = await admin<{ readonly link: string }>(gateway, "POST", `/accounts/${account}/invitations`);
  const api = `${gateway.url}/console/api`;
  const headers = { "x-tollgate-console": "1", connection: "close" };
  const json = { ...headers, "content-type": "application/json" };
  const token = new URL(link).hash.slice(1);
  const entered = await fetch(`${api}/sign-in/link`, {
    method: "POST",
    headers: json,
    body: JSON.stringify({ token }),
  });
  const cookie = entered.headers.get("set-cookie")?.split(";")[0] ?? "";
  return async (method: string, path: string, body?: object) => {
    const response = await fetch(api + path, {
      method,
      headers: { ...(body ? json : headers), cookie },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
}

/** Valid bodies of writes, by route id, in an order in which each can be performed. */
const bodiesFor = (code: string): Readonly<Record<string, object | undefined>> => ({
  redeemCode: { code },
  createKey: { group: "money", name: "Mine" },
  setKeyGroup: { group: "double-money" },
  renameKey: { name: "Other" },
  setKeyExpiry: { expires_at: null },
  setKeyLimits: { concurrency: 3 },
  suspendKey: undefined,
  resumeKey: undefined,
  rotateKey: {},
  revokeKey: undefined,
});

const pathOf = (path: string, { name, keyId }: Pick<TestAccount, "name" | "keyId">) =>
  path.replace("/accounts/:name", `/accounts/${name}`).replace("/keys/:id", `/keys/${keyId}`);

function namesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) => [name, ...namesIn(one)]);
}

/** Members that a schema allows in answers. */
function membersOf(schema: unknown): readonly string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, items } = schema as { readonly properties?: object; readonly items?: unknown };
  return [...Object.entries(properties).flatMap(([name, one]) => [name, ...membersOf(one)]), ...membersOf(items)];
}

test("no answer's schema has an operator-only member", () => {
  assert.ok(ROUTES.length >= 18, `${ROUTES.length} routes`);
  for (const { id, answers } of ROUTES) {
    const members = Object.values(answers).flatMap(membersOf);
    assert.deepEqual(
      members.filter((name) => OPERATORS.test(name)),
      [],
      id,
    );
  }
});

test("no answer contains an operator-only member", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const mine = await gateway.account();
  await furnish(gateway, mine);
  await spend(gateway, mine.key, "chat-alias");
  await admin(gateway, "PUT", `/accounts/${mine.name}/labels`, { labels: { customer: "label-canary" } });
  const [code = ""] = await codes(gateway, 1);
  const ask = await askerFor(gateway, mine.name);
  const bodies = bodiesFor(code);
  const reads = ROUTES.filter((one) => one.method === "GET" && needsNoMore(one, mine));
  const writes = Object.keys(bodies).map((id) => ROUTES.find((route) => route.id === id));
  assert.ok(reads.length >= 8, `${reads.length} reads`);
  for (const route of [...reads, ...writes, ...reads]) {
    assert.ok(route);
    const { status, text } = await ask(route.method, pathOf(route.path, mine), bodies[route.id]);
    assert.ok(status === 200 || status === 201, `${route.id}: ${status} ${text}`);
    const found = namesIn(JSON.parse(text)).filter((name) => OPERATORS.test(name));
    assert.deepEqual(found, [], route.id);
    assert.doesNotMatch(text, /label-canary|up-chat|up-messages|up-responses|chat-1-2026-08|upstream-canary/, route.id);
  }
});

/** Whether a route can be called with nothing but an account and a key. */
const needsNoMore = ({ path, query }: ConsoleRoute, mine: TestAccount) =>
  !pathOf(path, mine).includes(":") &&
  !(query as { readonly required?: readonly string[] } | undefined)?.required?.length;

test("another account's name and keys are 404 at each route, without information about it or changes to it", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const mine = await gateway.account();
  const other = await gateway.account({ usd: "77.7" });
  await admin(gateway, "PUT", `/keys/${other.keyId}/name`, { name: "name-canary" });
  const [code = ""] = await codes(gateway, 1);
  const state = async () => [
    await admin(gateway, "GET", `/accounts/${other.name}`),
    await admin(gateway, "GET", `/accounts/${other.name}/keys`),
    await admin(gateway, "GET", `/accounts/${other.name}/cards`),
  ];
  const before = await state();
  const ask = await askerFor(gateway, mine.name);
  const bodies = bodiesFor(code);
  const ofOne = ROUTES.filter(({ path }) => path.startsWith("/accounts/:name") || path.startsWith("/keys/:id"));
  assert.ok(ofOne.length >= 14, `${ofOne.length} routes`);
  for (const { id, method, path } of ofOne) {
    const { status, text } = await ask(method, pathOf(path, other), bodies[id]);
    assert.equal(status, 404, `${id}: ${text}`);
    assert.doesNotMatch(text, /name-canary|77\.7/, id);
  }
  assert.deepEqual(await state(), before);
  const redeemed = await admin<{ readonly state: string }[]>(gateway, "GET", "/codes");
  assert.match(JSON.stringify(redeemed), /"state":"unused"/);
});

test("codes tried by an operator for an account and codes tried by its owner are counted together", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const ask = await askerFor(gateway, name);
  const wrong = () => JSON.stringify({ code: newCode(0, randomBytes).text });
  const headers = { authorization: `Bearer ${gateway.gateway.adminToken}`, "content-type": "application/json" };
  const url = `${gateway.adminUrl}/admin/v1/accounts/${name}/redemptions`;
  for (let i = 0; i < 4; i++) {
    const { status } = await fetch(url, { method: "POST", headers, body: wrong() });
    assert.equal(status, 404);
  }
  const statuses = [];
  for (let i = 0; i < 3; i++) {
    statuses.push((await ask("POST", `/accounts/${name}/redemptions`, JSON.parse(wrong()) as object)).status);
  }
  assert.deepEqual(statuses, [404, 429, 429]);
});

test("admin-only routes do not exist for owners", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const mine = await gateway.account();
  const ask = await askerFor(gateway, mine.name);
  const tried: readonly (readonly [string, string, object?])[] = [
    ["GET", "/accounts"],
    ["POST", "/accounts", { name: "another" }],
    ["POST", `/accounts/${mine.name}/topups`, { usd: "1000", id: "free" }],
    ["POST", `/accounts/${mine.name}/adjustments`, { usd: "1000", id: "free", note: "free" }],
    ["POST", `/accounts/${mine.name}/gifts`, { card: "day" }],
    ["PUT", `/accounts/${mine.name}/plan`, { plan: "pro" }],
    ["PUT", `/accounts/${mine.name}/limits`, {}],
    ["PUT", `/accounts/${mine.name}/labels`, { labels: { a: "b" } }],
    ["POST", `/accounts/${mine.name}/invitations`],
    ["PUT", `/keys/${mine.keyId}/caps`, {}],
    ["GET", "/codes"],
    ["POST", "/codes", { card: "day", count: 1 }],
    ["GET", "/upstreams"],
    ["GET", "/audit"],
    ["GET", "/store"],
  ];
  for (const [method, path, body] of tried) {
    assert.equal((await ask(method, path, body)).status, 404, `${method} ${path}`);
  }
  const { text } = await ask("GET", `/accounts/${mine.name}`);
  assert.match(text, /"balance_usd":"10\.00"/);
});

test("without a session, or from another site, no route answers", async (t) => {
  const gateway = await startOwnerGateway();
  t.after(() => gateway.close());
  const mine = await gateway.account();
  const api = `${gateway.url}/console/api`;
  for (const { id, method, path } of ROUTES) {
    const own = { "x-tollgate-console": "1", connection: "close" };
    const url = api + pathOf(path, mine);
    assert.equal((await fetch(url, { method, headers: own })).status, 401, id);
    const foreign = await fetch(url, { method, headers: { ...own, origin: "https://evil.example" } });
    assert.equal(foreign.status, 403, id);
  }
});

test("a body above the listener's limit is refused before it reaches the console", async (t) => {
  const gateway = await startOwnerGateway({ body_bytes_max: "1KiB" });
  t.after(() => gateway.close());
  const response = await fetch(`${gateway.url}/console/api/sign-in/link`, {
    method: "POST",
    headers: { "x-tollgate-console": "1", "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ token: "A".repeat(2_000) }),
  });
  assert.equal(response.status, 413);
  assert.match(await response.text(), /body_too_large/);
});
