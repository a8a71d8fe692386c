import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { causeOf, KEY, request, startEcho } from "./echo.ts";

const PAGE = { line: "GET / HTTP/1.1", headers: [], body: "" } as const;

test("row 43: a POST to the root is 200 with a static page of text/html and a hint to the API's paths", async (t) => {
  const echo = await startEcho(t);
  for (const path of ["/", "//", "/?anything", "/?<script>alert(1)</script>", "/./", "/%2e"]) {
    const [response] = await exchange(echo.target, request({ line: `POST ${path} HTTP/1.1` }));
    const [other] = await exchange(echo.target, request(PAGE));
    assert.equal(response?.status, 200);
    assert.match(response.headers["content-type"] ?? "", /^text\/html/);
    assert.equal(response.headers["x-content-type-options"], "nosniff");
    assert.match(response.headers["content-security-policy"] ?? "", /default-src 'none'/);
    assert.equal(response.body, other?.body);
    assert.doesNotMatch(response.body, /script|anything/);
    assert.match(response.headers["x-tollgate-hint"] ?? "", /^use \/v1\/chat\/completions or/);
  }
  assert.equal(echo.requests.length, 0);
});

// fetch() sends a text as text/plain, so a program with a wrong address may send neither JSON nor a key.
test("a POST to the root without a key and JSON gets the hint, too", async (t) => {
  const echo = await startEcho(t);
  const text = ["Content-Type: text/plain;charset=UTF-8", "Content-Length: 2"];
  for (const headers of [[], text]) {
    const body = headers.length === 0 ? "" : "{}";
    const [response] = await exchange(echo.target, request({ line: "POST / HTTP/1.1", headers, body, key: undefined }));
    assert.equal(response?.status, 200);
    assert.match(response.headers["content-type"] ?? "", /^text\/html/);
    assert.match(response.headers["x-tollgate-hint"] ?? "", /^use \/v1\/chat\/completions or/);
  }
});

// An SDK with a base address without /v1 took the page, a 200, for a model's answer.
test("a POST of JSON, or with a key, to any other path is a 404 in JSON with the path that was probably meant", async (t) => {
  const echo = await startEcho(t);
  const ALL = "use /v1/chat/completions or /v1/messages or /v1/responses";
  const json = ["Content-Type: application/json; charset=utf-8", "Content-Length: 2"];
  const form = ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 2"];
  for (const [path, hint] of [
    ["/chat/completions", "use /v1/chat/completions"],
    ["//chat//completions", "use /v1/chat/completions"],
    ["/chat/completions?beta=true", "use /v1/chat/completions"],
    ["/api/messages", "use /v1/messages"],
    ["/openai/responses/", "use /v1/responses"],
    ["/embeddings", ALL],
    ["/<script>alert(1)</script>", ALL],
    ["/%3Cscript%3E", ALL],
  ] as const) {
    for (const one of [
      { headers: json, key: undefined },
      { headers: form, key: KEY },
    ]) {
      const [response] = await exchange(echo.target, request({ line: `POST ${path} HTTP/1.1`, body: "{}", ...one }));
      assert.equal(response?.status, 404, path);
      assert.equal(response.headers["content-type"], "application/json");
      assert.equal(response.headers["x-tollgate-hint"], hint);
      assert.equal(causeOf(response.body), "unknown_path");
      assert.match(response.body, /he base address of the client probably lacks \/v1\./);
      if (hint !== ALL) assert.ok(response.body.includes(`U${hint.slice(1)}: the base address`), response.body);
      assert.doesNotMatch(response.body, /script|embeddings|model/i);
    }
  }
  assert.equal(echo.requests.length, 0);
});

test("any other request gets the page at any path", async (t) => {
  const echo = await startEcho(t);
  const form = ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 2"];
  const json = ["Content-Type: application/json", "Content-Length: 2"];
  const [page] = await exchange(echo.target, request(PAGE));
  for (const one of [
    { line: "POST /anything HTTP/1.1", headers: form, body: "{}", key: undefined },
    { line: "GET /chat/completions HTTP/1.1", headers: [], body: "" },
    { line: "PUT /chat/completions HTTP/1.1", headers: json, body: "{}" },
    { line: "OPTIONS /chat/completions HTTP/1.1", headers: [], body: "" },
  ]) {
    const [response] = await exchange(echo.target, request(one));
    assert.equal(response?.status, 200, one.line);
    assert.equal(response.body, page?.body);
  }
});

test("a visitor who sends no POST gets no hint", async (t) => {
  const echo = await startEcho(t);
  const [response] = await exchange(echo.target, request({ ...PAGE, key: undefined }));
  assert.equal(response?.status, 200);
  assert.equal(response.headers["x-tollgate-hint"], undefined);
});

test("row 42: nothing of the admin listener is served here", async (t) => {
  const echo = await startEcho(t);
  const [page] = await exchange(echo.target, request(PAGE));
  const [other] = await exchange(echo.target, request({ ...PAGE, line: "GET /debug/pprof HTTP/1.1" }));
  assert.equal(other?.body, page?.body);
  // A 200 here would tell a front's health check that the gateway is healthy, whatever its own health check says.
  for (const path of ["/metrics", "/admin", "/admin/v1/accounts", "/healthz", "/readyz", "//healthz/", "/HEALTHZ?a"]) {
    for (const method of ["GET", "HEAD", "POST"]) {
      const line = `${method} ${path} HTTP/1.1`;
      const [response] = await exchange(echo.target, request({ ...PAGE, headers: ["Connection: close"], line }));
      assert.equal(response?.status, 404, line);
      if (method !== "HEAD") assert.equal(causeOf(response.body), "unknown_path");
    }
  }
  for (const path of ["/metrics2", "/administrator", "/health"]) {
    const [response] = await exchange(echo.target, request({ ...PAGE, line: `GET ${path} HTTP/1.1` }));
    assert.equal(response?.status, 200, path);
  }
});

const FROM_EVIL = ["Origin: https://evil.test", "Content-Type: application/json", "Content-Length: 2"];
const PREFLIGHT = [
  "Origin: https://app.test",
  "Access-Control-Request-Method: POST",
  "Access-Control-Request-Headers: authorization, x-stainless-os",
];

test("row 83: no access-control header unless the origin is configured", async (t) => {
  const plain = await startEcho(t);
  const configured = await startEcho(t, { corsOrigins: ["https://app.test"] });
  for (const echo of [plain, configured]) {
    const [post] = await exchange(echo.target, request({ headers: FROM_EVIL, body: "{}" }));
    const evil = ["Origin: https://evil.test", "Access-Control-Request-Method: POST"];
    const line = "OPTIONS /v1/chat/completions HTTP/1.1";
    const [preflight] = await exchange(echo.target, request({ line, headers: evil, body: "" }));
    assert.equal(preflight?.status, 405);
    for (const response of [post, preflight]) {
      assert.equal(
        Object.keys(response?.headers ?? {}).some((name) => name.startsWith("access-control")),
        false,
      );
    }
  }
});

test("if any origin is configured, every answer tells shared caches that it depends on the origin", async (t) => {
  const plain = await startEcho(t);
  const configured = await startEcho(t, { corsOrigins: ["https://app.test"] });
  const own = ["Content-Type: application/json", "Content-Length: 2"];
  for (const headers of [own, FROM_EVIL, ["Origin: https://app.test", ...own]]) {
    const [without] = await exchange(plain.target, request({ headers, body: "{}" }));
    const [varied] = await exchange(configured.target, request({ headers, body: "{}" }));
    assert.deepEqual([without?.headers.vary, varied?.headers.vary], [undefined, "Origin"], headers.join());
  }
});

test("a configured origin may send requests and read the answers", async (t) => {
  const echo = await startEcho(t, { corsOrigins: ["https://app.test"] });
  const line = "OPTIONS /v1/chat/completions HTTP/1.1";
  const [preflight] = await exchange(echo.target, request({ line, headers: PREFLIGHT, body: "", key: undefined }));
  assert.equal(preflight?.status, 204);
  assert.equal(preflight.headers["access-control-allow-origin"], "https://app.test");
  assert.equal(preflight.headers["access-control-allow-headers"], "authorization, x-stainless-os");
  const own = ["Origin: https://app.test", "Content-Type: application/json", "Content-Length: 2"];
  const [post] = await exchange(echo.target, request({ headers: own, body: "{}", key: KEY }));
  assert.equal(post?.headers["access-control-allow-origin"], "https://app.test");
  assert.equal(post.headers.vary, "Origin");
});
