import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { causeOf, request, startEcho } from "./echo.ts";

const CASES = [
  ["POST", "/v1/v1/messages/count_tokens?beta=true", "doubled_prefix", "/v1/messages/count_tokens"],
  ["POST", "/v1/v1/responses/input_tokens", "doubled_prefix", "/v1/responses/input_tokens"],
  ["POST", "/v1//v1/responses/compact", "doubled_prefix", "/v1/responses/compact"],
  ["GET", "/v1/v1/models", "doubled_prefix", "/v1/models"],
  ["GET", "/v1/v1/models/big-1", "doubled_prefix", "/v1/models/{id}"],
  ["GET", "/v1/v1/responses/resp_1", "doubled_prefix", "/v1/responses/{id}"],
  ["GET", "/v1/v1/v1/usage", "doubled_prefix", "/v1/usage"],
  ["POST", "/messages/count_tokens", "unknown_path", "/v1/messages/count_tokens"],
  ["POST", "/v1/responses/input_tokens/", "unknown_path", "/v1/responses/input_tokens"],
] as const;

for (const [method, path, cause, hint] of CASES) {
  test(`${method} ${path} is 404 ${cause}, and the hint is ${hint}`, async (t) => {
    const echo = await startEcho(t);
    const [response] = await exchange(echo.target, request({ line: `${method} ${path} HTTP/1.1` }));
    assert.equal(response?.status, 404);
    assert.equal(causeOf(response.body), cause);
    assert.equal(response.headers["x-tollgate-hint"], `use ${hint}`);
    assert.doesNotMatch(response.body, /model/i);
    assert.equal(echo.requests.length, 0);
  });
}
