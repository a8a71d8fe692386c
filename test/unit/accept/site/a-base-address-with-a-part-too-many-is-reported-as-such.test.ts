/** ARCHITECTURE.md promise 11: clients are also configured with the base address of another server (`/api/v1`, `/anthropic`). */
import assert from "node:assert/strict";
import test from "node:test";
import { exchange } from "../../../rig/raw-socket.ts";
import { request, startEcho } from "../echo.ts";

const CASES = [
  [
    "/api/v1/chat/completions",
    "Use /v1/chat/completions: the base address of the client probably has a part too many.",
  ],
  ["/anthropic/v1/messages", "Use /v1/messages: the base address of the client probably has a part too many."],
  ["/messages", "Use /v1/messages: the base address of the client probably lacks /v1."],
  ["/api/responses", "Use /v1/responses: the base address of the client probably lacks /v1."],
  ["/models", "The base address of the client probably lacks /v1."],
] as const;

for (const [path, words] of CASES) {
  test(`POST ${path}: ${words}`, async (t) => {
    const echo = await startEcho(t);
    const [response] = await exchange(echo.target, request({ line: `POST ${path} HTTP/1.1` }));
    assert.equal(response?.status, 404);
    assert.ok(response.body.includes(words), response.body);
  });
}
