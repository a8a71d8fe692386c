/**
 * The operator's session in a browser: the token signs in, the cookie keeps the session, and nothing else grants
 * access.
 */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import test from "node:test";
import { TOKEN_GUESS_LIMITS } from "../../../../src/console/guess-budget.ts";
import { createSealing } from "../../../../src/request/sealing.ts";
import { StoreError } from "../../../../src/store/contract.ts";
import { Secret } from "../../../../src/values/secret.ts";
import { HandClock } from "../../../e2e/protocol/whole/hand-clock.ts";
import { ADMIN_TOKEN, type RunningConsole, startConsole } from "../running-console.ts";
import { openTestStore } from "../test-store.ts";

const SEALER = createSealing([new Secret("a-sealing-key-for-tests-0123456789")]);
const PAGES = { pages: { sealer: SEALER, sessionMs: 3_600_000 } };
/** What the page sends instead of the token. */
const PAGE = { authorization: "", "x-tollgate-console": "1" };
type Headers = Record<string, string>;

/** `fetch` sends a header without a value as an empty one: this one leaves it out. */
async function visit(console: RunningConsole, method: string, path: string, headers: Headers = {}, body?: object) {
  const response = await fetch(console.url + path, {
    method,
    redirect: "manual",
    headers: { connection: "close", ...(body && { "content-type": "application/json" }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : {};
  return { status: response.status, headers: response.headers, text, json };
}

const OWN = { "x-tollgate-console": "1", "sec-fetch-site": "same-origin" };

async function signIn(console: RunningConsole, token = ADMIN_TOKEN): Promise<Headers> {
  const answer = await visit(console, "POST", "/admin/v1/session", OWN, { token });
  assert.equal(answer.status, 201, answer.text);
  return { ...OWN, cookie: cookieOf(answer.headers.get("set-cookie")) };
}

const cookieOf = (header: string | null) => (header ?? "").split(";")[0] ?? "";

test("the token signs in, the cookie is valid until sign-out, and the audit line of each write names the session", async (t) => {
  const console = await startConsole(t, PAGES);
  const answer = await visit(console, "POST", "/admin/v1/session", OWN, { token: ADMIN_TOKEN });
  assert.match(
    answer.headers.get("set-cookie") ?? "",
    /^__Host-tollgate-operator=[^;]{40,}; Path=\/; Max-Age=3600; HttpOnly; Secure; SameSite=Lax$/,
  );
  assert.ok(!answer.text.includes(ADMIN_TOKEN));
  const browser = { ...OWN, cookie: cookieOf(answer.headers.get("set-cookie")) };
  const session = await visit(console, "GET", "/admin/v1/session", browser);
  assert.deepEqual([session.status, session.json.plans], [200, ["free", "pro"]]);
  // Cookies do not depend on ports, so those of other programs on the machine come along.
  for (const cookie of [`other=1; ${browser.cookie}`, `other=1;${browser.cookie}; another=2`]) {
    assert.equal((await visit(console, "GET", "/admin/v1/session", { ...OWN, cookie })).status, 200);
  }
  assert.equal((await visit(console, "POST", "/admin/v1/accounts", browser, { name: "alice" })).status, 201);
  assert.equal((await console.ask("POST", "/admin/v1/accounts", { name: "bob" })).status, 201);
  const { json: audit } = await visit(console, "GET", "/admin/v1/audit", browser);
  const [bob, alice, came] = audit.items as { who: string; what: string }[];
  assert.deepEqual([came?.who, came?.what], ["operator:session", "operator.sign_in"]);
  assert.equal(alice?.who, "operator:session");
  assert.match(bob?.who ?? "", /^token:[0-9a-f]{8}$/);
  const out = await visit(console, "POST", "/admin/v1/session/end", browser);
  assert.match(out.headers.get("set-cookie") ?? "", /^__Host-tollgate-operator=; .*Max-Age=0/);
  const after = await visit(console, "GET", "/admin/v1/accounts", browser);
  assert.deepEqual([after.status, after.json.error.code], [401, "signed_out"]);
});

test("a wrong token is refused and counted with those of programs, and the right one still works", async (t) => {
  const reasons: string[] = [];
  const blocked: string[] = [];
  const console = await startConsole(t, {
    ...PAGES,
    clock: new HandClock(),
    onAccessRefused: (reason) => reasons.push(reason),
    onTokenGuesses: (from) => blocked.push(from),
  });
  for (let i = 0; i < TOKEN_GUESS_LIMITS.failuresPerMinute; i++) {
    const wrong = await visit(console, "POST", "/admin/v1/session", OWN, { token: "not-the-token" });
    assert.deepEqual([wrong.status, wrong.json.error.code], [401, "wrong_token"]);
    assert.match(
      wrong.json.error.remedy,
      /^It is admin_token of .* A program needs no session/,
      "the remedy does not ask for a header",
    );
    assert.equal(wrong.headers.get("set-cookie"), null);
  }
  assert.equal((await visit(console, "POST", "/admin/v1/session", OWN, { token: "not-the-token" })).status, 429);
  assert.equal((await console.ask("GET", "/admin/v1/accounts", undefined, { authorization: "Bearer no" })).status, 429);
  assert.deepEqual(blocked, ["127.0.0.1"]);
  assert.equal(reasons.filter((reason) => reason === "wrong_token").length, TOKEN_GUESS_LIMITS.failuresPerMinute);
  await signIn(console);
});

test("another site cannot use the cookie, and cannot sign anyone in", async (t) => {
  const console = await startConsole(t, PAGES);
  const { cookie = "" } = await signIn(console);
  const others: Headers[] = [
    { cookie },
    { ...PAGE, cookie, "sec-fetch-site": "cross-site" },
    { ...PAGE, cookie, "sec-fetch-site": "same-site" },
    { ...PAGE, cookie, origin: "https://evil.example" },
    { ...PAGE, cookie, origin: "null" },
  ].map(({ authorization: _, ...headers }: Headers) => headers);
  for (const headers of others) {
    for (const [method, path] of [
      ["GET", "/admin/v1/accounts"],
      ["POST", "/admin/v1/session/end"],
      ["GET", "/admin/v1/live"],
    ] as const) {
      const answer = await visit(console, method, path, headers);
      assert.deepEqual([answer.status, answer.json.error.code], [403, "other_site"], JSON.stringify(headers));
    }
  }
  const forged = { "x-tollgate-console": "1", "sec-fetch-site": "cross-site" };
  assert.equal((await visit(console, "POST", "/admin/v1/session", forged, { token: ADMIN_TOKEN })).status, 403);
  assert.equal((await visit(console, "GET", "/admin/v1/accounts", { ...OWN, cookie })).status, 200);
});

test("a token in the request decides, whatever cookie is sent with it", async (t) => {
  const console = await startConsole(t, PAGES);
  const browser = await signIn(console);
  const statusWith = async (cookie: string, token: string) =>
    (await visit(console, "GET", "/admin/v1/accounts", { ...OWN, cookie, authorization: `Bearer ${token}` })).status;
  assert.equal(await statusWith("__Host-tollgate-operator=of-another-time", ADMIN_TOKEN), 200);
  assert.equal(await statusWith(browser.cookie ?? "", "not-the-admin-token-of-it"), 401);
});

test("another admin token, a changed cookie, and its expiry end a session", async (t) => {
  const clock = new HandClock();
  const store = await openTestStore(t);
  const console = await startConsole(t, { ...PAGES, store, clock });
  const browser = await signIn(console);
  const other = await startConsole(t, { ...PAGES, store, clock, adminToken: new Secret("another-admin-token-012") });
  assert.equal((await visit(console, "GET", "/admin/v1/accounts", browser)).status, 200);
  assert.equal((await visit(other, "GET", "/admin/v1/accounts", browser)).json.error.code, "signed_out");
  const changed = { ...browser, cookie: `${browser.cookie?.slice(0, -3)}AAA` };
  assert.equal((await visit(console, "GET", "/admin/v1/accounts", changed)).status, 401);
  clock.advance(3_600_000);
  assert.equal((await visit(console, "GET", "/admin/v1/accounts", browser)).status, 401);
});

test("while the store is unreachable, sessions of this process stay valid, and the token signs in at this process only", async (t) => {
  const real = await openTestStore(t);
  let isAway = false;
  const store = new Proxy(real, {
    get(target, name) {
      const call = Reflect.get(target, name) as unknown;
      if (typeof call !== "function" || !String(name).endsWith("SignIn")) return call;
      return (...args: unknown[]) => {
        if (isAway) throw new StoreError("older", "the store lacks data");
        return call.apply(target, args);
      };
    },
  });
  const console = await startConsole(t, { ...PAGES, store });
  const before = await signIn(console);
  const elsewhere = await startConsole(t, { ...PAGES, store });
  const ended = await signIn(console);
  assert.equal((await visit(elsewhere, "POST", "/admin/v1/session/end", ended)).status, 200);
  assert.equal((await visit(console, "GET", "/admin/v1/session", ended)).status, 401);
  isAway = true;
  assert.equal(
    (await visit(console, "GET", "/admin/v1/session", ended)).status,
    401,
    "a session that was ended on another process stays ended",
  );
  assert.equal((await visit(console, "GET", "/admin/v1/session", before)).status, 200);
  const during = await signIn(console);
  assert.equal((await visit(console, "GET", "/admin/v1/session", during)).status, 200);
  assert.equal((await visit(elsewhere, "GET", "/admin/v1/session", during)).status, 401);
  isAway = false;
  assert.equal((await visit(console, "GET", "/admin/v1/session", during)).status, 200);
  await visit(console, "POST", "/admin/v1/session/end", during);
  assert.equal((await visit(console, "GET", "/admin/v1/session", during)).status, 401);
  assert.equal((await visit(console, "GET", "/admin/v1/session", before)).status, 200);
});

test("a browser is redirected from / to the console, a program is not, and without an admin token signing in is refused", async (t) => {
  const console = await startConsole(t, PAGES);
  const html = { accept: "text/html,application/xhtml+xml" };
  const root = await visit(console, "GET", "/", html);
  assert.deepEqual([root.status, root.headers.get("location")], [302, "/console/"]);
  assert.equal((await visit(console, "GET", "/")).json.error.code, "missing_token");
  assert.equal((await console.ask("GET", "/")).json.error.code, "unknown_path");
  const page = await visit(console, "GET", "/console/accounts", html);
  assert.match(page.text, /data-root="\/console" data-api="\/admin\/v1"/);
  assert.match(page.headers.get("content-security-policy") ?? "", /script-src 'self'/);
  const open = await startConsole(t, { ...PAGES, adminToken: undefined });
  const refused = await visit(open, "POST", "/admin/v1/session", OWN, { token: "anything" });
  assert.deepEqual([refused.status, refused.json.error.code], [403, "admin_token_required"]);
  assert.equal((await visit(open, "GET", "/admin/v1/accounts", OWN)).status, 401);
  await wholePages(t);
});

/** Limit of all that a browser loads for the operator's pages, compressed. */
const PAGE_BYTES_MAX = 150_000;

test("the pages are small, cached by browsers without end, and load nothing of the owners' pages", async (t) => {
  const console = await startConsole(t, PAGES);
  const { text } = await visit(console, "GET", "/console/");
  const assets = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path]) => path ?? "");
  assert.ok(assets.length > 30 && assets.every((path) => path.startsWith("/console/assets/")));
  assert.ok(assets.every((path) => !path.includes("/owner/main.ts")));
  let bytes = 0;
  for (const path of new Set(assets)) {
    const response = await fetch(console.url + path, { headers: { "accept-encoding": "gzip", connection: "close" } });
    assert.equal(response.status, 200, path);
    assert.match(response.headers.get("cache-control") ?? "", /immutable/);
    bytes += Number(response.headers.get("content-length"));
    await response.arrayBuffer();
  }
  assert.ok(bytes > 20_000 && bytes < PAGE_BYTES_MAX, `${bytes} bytes`);
});

/** Without the pages, these paths are 404. */
async function wholePages(t: TestContext): Promise<void> {
  const bare = await startConsole(t);
  assert.equal((await bare.ask("GET", "/console/")).status, 404);
  assert.equal((await bare.ask("POST", "/admin/v1/session", { token: ADMIN_TOKEN })).status, 404);
}
