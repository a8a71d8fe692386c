// A status in the code of an error in a 200 or a stream means the same as an HTTP status, and a server's own failure
// under a 4xx status is still a failure of the server (docs/translation-rules.md rule 50).
import assert from "node:assert/strict";
import test from "node:test";
import { reported } from "../../../src/convert/watch.ts";

const causeOf = (code: unknown, message: unknown, type?: unknown) => reported(type, code, message).cause;

test("a status in the error code is read like an HTTP status", () => {
  for (const code of [400, 413, 422, "400"]) assert.equal(causeOf(code, "Invalid tool schema"), "upstream_rejected");
  assert.equal(causeOf(429, "Slow down"), "upstream_rate_limit");
  for (const code of [401, 402, 403]) assert.equal(causeOf(code, "No access"), "upstream_forbidden");
  assert.equal(reported(undefined, 404, "No such model").code, "model_not_found");
  assert.equal(causeOf(408, "Too late"), "upstream_timeout");
  for (const code of [500, 502, 529, 1, -400, "4xx"]) assert.equal(causeOf(code, "Invalid"), "upstream_unavailable");
  assert.equal(reported("BadRequestError", 400, "Invalid grammar: x").words, "Invalid grammar: x");
});

test("a 400 whose message reports a failure of the server is a failure of the server", () => {
  for (const message of [
    "Internal server error",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "Background loop has errored already.",
    "'NoneType' object has no attribute 'choices'",
    "Connection error.",
    "",
    undefined,
  ]) {
    assert.equal(causeOf(400, message, "BadRequestError"), "upstream_unavailable", String(message));
  }
});

test("a message that quotes the request does not count as a failure of the server", () => {
  const message = "Invalid tool name: 'internal server error, CUDA out of memory'";
  assert.equal(causeOf(400, message), "upstream_rejected");
});
