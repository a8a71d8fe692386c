import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { KEY, request, startEcho } from "./echo.ts";

const PAGE = { line: "GET / HTTP/1.1", headers: [], body: "" } as const;

test("row 43: a POST to the root or anywhere else is 200 text/html, static, and tells where the API is", async (t) => {
  const echo = await startEcho(t);
  for (const path of ["/", "/anything", "/<script>alert(1)</script>", "/%3Cscript%3E"]) {
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

test("a POST whose path ends like one of ours is told which", async (t) => {
  const echo = await startEcho(t);
  for (const [path, hint] of [
    ["/chat/completions", "use /v1/chat/completions"],
    ["/api/messages", "use /v1/messages"],
    ["/openai/responses/", "use /v1/responses"],
  ]) {
    const [response] = await exchange(echo.target, request({ line: `POST ${path} HTTP/1.1` }));
    assert.equal(response?.headers["x-tollgate-hint"], hint);
  }
});

test("a visitor without key and JSON gets no hint", async (t) => {
  const echo = await startEcho(t);
  const [response] = await exchange(echo.target, request({ ...PAGE, key: undefined }));
  assert.equal(response?.status, 200);
  assert.equal(response.headers["x-tollgate-hint"], undefined);
});

test("row 42: nothing of the admin listener is here", async (t) => {
  const echo = await startEcho(t);
  const [page] = await exchange(echo.target, request(PAGE));
  for (const path of ["/metrics", "/admin", "/debug/pprof", "/healthz", "/readyz"]) {
    const [response] = await exchange(echo.target, request({ ...PAGE, line: `GET ${path} HTTP/1.1` }));
    assert.equal(response?.body, page?.body);
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

test("a configured origin may ask and read", async (t) => {
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
