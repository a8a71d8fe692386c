import assert from "node:assert/strict";
import test from "node:test";
import { protocolOfTarget, routeOf } from "../../../src/accept/routes.ts";
import { isRefusal } from "../../../src/values/errors.ts";
import { exchange } from "../../rig/raw-socket.ts";
import { causeOf, request, startEcho } from "./echo.ts";

const LOOKALIKES = [
  "/%2e%2e/v1/messages",
  "//v1/messages",
  "/v1/messages/",
  "/v1/messages;x",
  "/V1/messages",
  "/v1/messages%00",
  "/v1%2fmessages",
  "/%76%31/messages",
  "/%2576%2531/messages",
  "/a/../v1/messages",
  "/./v1/messages",
  "/\\v1/messages",
  "/v1",
  "/v1/",
  "/v1/chat",
  "/v1/chat/completions/",
  "/v1/responses/",
  "/v1/models/",
  "/v1/models/a/b",
];

for (const path of LOOKALIKES) {
  test(`row 16: ${path} is 404, and the answer does not mention a model`, async (t) => {
    const echo = await startEcho(t);
    const [response] = await exchange(echo.target, request({ line: `POST ${path} HTTP/1.1` }));
    assert.ok(response && response.status === 404);
    assert.equal(causeOf(response.body), "unknown_path");
    assert.doesNotMatch(response.body, /model/i);
    assert.equal(echo.requests.length, 0);
  });
}

test("row 16: a query does not change the route", async (t) => {
  const echo = await startEcho(t);
  const [response] = await exchange(echo.target, request({ line: "POST /v1/chat/completions?beta=true HTTP/1.1" }));
  assert.equal(response?.status, 200);
  assert.equal(echo.requests[0]?.query, "beta=true");
});

for (const [path, hint] of [
  ["/v1/v1/messages", "/v1/messages"],
  ["/v1/v1/messages?beta=true", "/v1/messages"],
  ["/v1/v1/v1/chat/completions", "/v1/chat/completions"],
  ["/v1//v1/responses", "/v1/responses"],
] as const) {
  test(`row 17: ${path} is 404 and names the right path`, async (t) => {
    const echo = await startEcho(t);
    const [response] = await exchange(echo.target, request({ line: `POST ${path} HTTP/1.1` }));
    assert.equal(response?.status, 404);
    assert.equal(causeOf(response.body), "doubled_prefix");
    assert.equal(response.headers["x-tollgate-hint"], `use ${hint}`);
    assert.match(response.body, new RegExp(`Use ${hint}\\.`));
    assert.doesNotMatch(response.body, /model/i);
    assert.equal(echo.requests.length, 0);
  });
}

test("row 18: an upgrade is served as a plain request", async (t) => {
  const echo = await startEcho(t);
  for (const upgrade of ["h2c", "websocket"]) {
    const headers = ["Content-Type: application/json", "Content-Length: 2", "Connection: Upgrade, HTTP2-Settings"];
    const own = [...headers, `Upgrade: ${upgrade}`, "HTTP2-Settings: AAMAAABkAAQAAP__"];
    const [response] = await exchange(echo.target, request({ headers: own, body: "{}" }));
    assert.equal(response?.status, 400);
    assert.equal(causeOf(response.body), "missing_field");
  }
});

test("a WebSocket upgrade of GET /v1/responses is 426, and other methods are 405 with allow", async (t) => {
  const echo = await startEcho(t);
  const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  const [websocket] = await exchange(
    echo.target,
    request({ line: "GET /v1/responses HTTP/1.1", headers: upgrade, body: "" }),
  );
  assert.equal(websocket?.status, 426);
  assert.equal(websocket.headers.upgrade, "HTTP/1.1");
  // RFC 9110 section 7.8: whoever sends Upgrade also names it in Connection.
  assert.match(websocket.headers.connection ?? "", /\bUpgrade\b/i);
  for (const [line, allow] of [
    ["GET /v1/responses HTTP/1.1", "POST, HEAD"],
    ["OPTIONS /v1/messages HTTP/1.1", "POST, HEAD"],
    ["POST /v1/models HTTP/1.1", "GET, HEAD"],
    ["GET /v1/messages/count_tokens HTTP/1.1", "POST"],
    ["PUT /v1/responses/resp_1 HTTP/1.1", "GET, DELETE"],
  ] as const) {
    const [response] = await exchange(echo.target, request({ line, headers: [], body: "" }));
    assert.equal(response?.status, 405, line);
    assert.equal(response.headers.allow, allow);
  }
});

test("HEAD on the three API paths and the root is 200 without a body", async (t) => {
  const echo = await startEcho(t);
  for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/"]) {
    const bytes = request({ line: `HEAD ${path} HTTP/1.1`, headers: ["Connection: close"], body: "" });
    const [response] = await exchange(echo.target, bytes);
    assert.equal(response?.status, 200, path);
    assert.equal(response.body, "");
  }
});

test("the other endpoints have names, and errors take the form of the path's protocol", () => {
  assert.deepEqual(routeOf("GET", "/v1/models"), { kind: "models", id: undefined });
  assert.deepEqual(routeOf("GET", "/v1/models/vendor%2Fbig-1"), { kind: "models", id: "vendor/big-1" });
  for (const [method, path, name, protocol] of [
    ["POST", "/v1/messages/count_tokens", "count_tokens", "messages"],
    ["POST", "/v1/responses/input_tokens", "input_tokens", "responses"],
    ["GET", "/v1/usage", "usage", "chat"],
    ["POST", "/v1/responses/compact", "compact", "responses"],
    ["GET", "/v1/responses/resp_1", "stored_response", "responses"],
    ["DELETE", "/v1/responses/resp_1", "stored_response", "responses"],
    ["POST", "/v1/responses/resp_1/cancel", "stored_response", "responses"],
  ] as const) {
    assert.deepEqual(routeOf(method, path), { kind: "side", name, protocol });
  }
  assert.ok(isRefusal(routeOf("GET", "/v1/messages/count_tokens")));
  assert.equal(protocolOfTarget("/v1/v1/messages"), "messages");
  assert.equal(protocolOfTarget("/v1%2fresponses"), "responses");
  assert.equal(protocolOfTarget("/"), "chat");
});

test("the console has exactly its path and the paths below it; all others belong to the site", () => {
  const kindOf = (path: string, root: string | undefined) => {
    const route = routeOf("GET", path, false, root);
    return isRefusal(route) ? "refused" : route.kind;
  };
  for (const path of ["/console", "/console/", "/console/api/session", "/console/assets/1/a..b.ts"]) {
    assert.equal(kindOf(path, "/console"), "console", path);
    assert.equal(kindOf(path, undefined), "site", path);
  }
  for (const path of [
    "/consoles",
    "/console.html",
    "/console%2fapi/session",
    "/Console/",
    "//console/",
    "/a/console/",
    "/console/../admin",
    "/console/%2e%2e/private",
    "/console/..;/private",
    "/console/a/..\\private",
  ]) {
    assert.equal(kindOf(path, "/console"), "site", path);
  }
  assert.equal(kindOf("/v1/models", "/v1"), "models");
  assert.equal(kindOf("/console/../v1/messages", "/console"), "refused");
});
