import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { makeAccess } from "../../../src/console/access.ts";
import { CodeGuesses } from "../../../src/console/guess-budget.ts";
import { adminListener } from "../../../src/console/listener.ts";
import { AdminRefusal } from "../../../src/console/refusal.ts";
import { Secret } from "../../../src/values/secret.ts";
import { systemClock } from "../../../src/values/time.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { ADMIN_TOKEN, CATALOG, startConsole } from "./running-console.ts";
import { openTestStore } from "./test-store.ts";

const ROUTES = [
  ["POST", "/admin/v1/accounts"],
  ["GET", "/admin/v1/accounts"],
  ["GET", "/admin/v1/accounts/alice"],
  ["PUT", "/admin/v1/accounts/alice/plan"],
  ["POST", "/admin/v1/accounts/alice/keys"],
  ["GET", "/admin/v1/accounts/alice/keys"],
  ["PUT", "/admin/v1/keys/key_000000000000000000/group"],
  ["POST", "/admin/v1/keys/key_000000000000000000/revoke"],
  ["POST", "/admin/v1/accounts/alice/topups"],
  ["POST", "/admin/v1/accounts/alice/adjustments"],
  ["GET", "/admin/v1/accounts/alice/ledger"],
  ["GET", "/admin/v1/nothing"],
  ["GET", "/admin/%76%31/accounts"],
] as const;

test("row 42: if there is a token, every admin path is 401 without it, before anything else is checked", async (t) => {
  const store = await openTestStore(t);
  const wrong = [
    "",
    `Bearer ${ADMIN_TOKEN}x`,
    `Bearer ${ADMIN_TOKEN.slice(1)}`,
    "Bearer ",
    ADMIN_TOKEN,
    `Basic ${ADMIN_TOKEN}`,
    `Bearer ${ADMIN_TOKEN} ${ADMIN_TOKEN}`,
  ];
  for (const [method, path] of ROUTES) {
    // One address per path: the twentieth wrong token of an address is answered 429.
    const { ask, log } = await startConsole(t, { store });
    for (const authorization of wrong) {
      const body = method === "GET" ? undefined : { name: "alice" };
      const answer = await ask(method, path, body, { authorization });
      assert.equal(answer.status, 401, `${method} ${path} with "${authorization}"`);
      assert.equal(answer.headers.get("www-authenticate"), 'Bearer realm="tollgate-admin"');
      assert.match(answer.json.error.code, /^(missing|wrong)_token$/);
      assert.ok(!answer.text.includes(ADMIN_TOKEN));
    }
    assert.deepEqual(log, []);
  }
  assert.equal((await store.listAccounts(undefined, 10)).items.length, 0);
});

test("with the token the admin API answers, and the case of the scheme does not matter", async (t) => {
  const { ask } = await startConsole(t);
  for (const scheme of ["Bearer", "bearer"]) {
    const answer = await ask("GET", "/admin/v1/accounts", undefined, { authorization: `${scheme} ${ADMIN_TOKEN}` });
    assert.equal(answer.status, 200);
  }
});

test("without an admin token only programs on this machine that connect directly may administer", async (t) => {
  const { ask, store } = await startConsole(t, { adminToken: undefined });
  assert.equal((await ask("GET", "/admin/v1/accounts")).status, 200);
  const strangers: Record<string, string>[] = [
    { "x-forwarded-for": "203.0.113.7" },
    { forwarded: "for=203.0.113.7" },
    { "x-real-ip": "203.0.113.7" },
    { via: "1.1 front" },
    { origin: "https://evil.example" },
  ];
  for (const headers of strangers) {
    const answer = await ask("POST", "/admin/v1/accounts", { name: "mallory" }, headers);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.equal(answer.json.error.code, "admin_token_required");
  }
  assert.equal(await store.findAccount("mallory"), undefined);
});

test("without an admin token, a host name that was rebound to loopback is refused", async (t) => {
  const { url } = await startConsole(t, { adminToken: undefined });
  const call = request(`${url}/admin/v1/accounts`, { headers: { host: "evil.example" } }).end();
  const [response] = await once(call, "response");
  response.resume();
  await once(response, "end");
  assert.equal(response.statusCode, 403);
});

test("a peer outside loopback, or one that has disconnected, is refused without an admin token and needs it for metrics", () => {
  const away = ["203.0.113.7", "::ffff:203.0.113.7", "10.0.0.1", "::2", "127.0.0.1.example", undefined];
  const open = makeAccess(undefined);
  const closed = makeAccess(new Secret(ADMIN_TOKEN));
  const host = "127.0.0.1:8788";
  const authorization = `Bearer ${ADMIN_TOKEN}`;
  for (const address of away) {
    const peer = { address, unix: false, headers: { host } };
    assert.throws(() => open.admin(peer), { status: 403 });
    assert.throws(() => open.metrics(peer), { status: 403 });
    assert.throws(() => closed.metrics(peer), { status: 401 });
    assert.doesNotThrow(() => closed.metrics({ ...peer, headers: { host, authorization } }));
  }
  for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) {
    const peer = { address, unix: false, headers: { host } };
    assert.doesNotThrow(() => open.admin(peer));
    assert.doesNotThrow(() => closed.metrics(peer));
    assert.throws(() => closed.admin(peer), AdminRefusal);
  }
});

test("over a unix socket the file's permissions decide", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-"));
  t.after(() => rm(dir, { recursive: true }));
  const socketPath = join(dir, "admin.sock");
  await listenWithoutToken(t, socketPath);
  const call = request({ socketPath, path: "/admin/v1/accounts", headers: { host: "tollgate" } }).end();
  const [response] = await once(call, "response");
  response.resume();
  await once(response, "end");
  assert.equal(response.statusCode, 200);
});

async function listenWithoutToken(t: TestContext, path: string) {
  const listener = adminListener({
    store: await openTestStore(t),
    catalog: () => CATALOG,
    adminToken: undefined,
    random: randomBytes,
    codeGuesses: new CodeGuesses(systemClock),
    metrics: async () => ({ contentType: "text/plain", body: "" }),
    readiness: () => ({ ready: true, reasons: [], notes: [] }),
    clock: systemClock,
    log: () => {},
  });
  t.after(() => listener.close());
  await listener.listen({ kind: "unix", path });
}

test("a body announced without the token, or with a wrong one, is not read to its end", async (t) => {
  const { url, ask } = await startConsole(t);
  for (const authorization of ["", `Bearer ${ADMIN_TOKEN}x`]) {
    for (const framing of ["Content-Length: 1000000000", "Transfer-Encoding: chunked"]) {
      const head = ["POST /admin/v1/accounts HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", framing];
      if (authorization !== "") head.push(`Authorization: ${authorization}`);
      const client = new RawSocket({ port: Number(new URL(url).port) }).send(`${head.join("\r\n")}\r\n\r\n`);
      const [response] = await client.responsesUntilClosed();
      assert.deepEqual([response?.status, response?.headers.connection], [401, "close"], framing);
    }
  }
  assert.equal((await ask("GET", "/admin/v1/accounts")).status, 200);
});
