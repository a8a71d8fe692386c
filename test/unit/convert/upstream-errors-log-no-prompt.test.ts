// The names of an upstream's error and its finish reason are logged as the reason of an attempt. Because a server can
// quote a prompt there, only single words are logged (docs/failure-model.md row 72).
import assert from "node:assert/strict";
import test from "node:test";
import { brokenOff, reported } from "../../../src/convert/watch.ts";

test("single words are logged, and anything else is logged as `other`", () => {
  assert.equal(reported("api_error", "engine.dead:1-x").reason, "the upstream reported api_error/engine.dead:1-x");
  assert.equal(reported(undefined, 400, "x").reason, "the upstream reported 400");
  for (const quote of ["a secret prompt", "geheim\n", "x".repeat(41), "pâté", ""]) {
    assert.equal(reported("api_error", quote).reason, "the upstream reported api_error/other");
    assert.equal(reported(quote, undefined).reason, "the upstream reported other");
  }
  assert.equal(brokenOff("MALFORMED_FUNCTION_CALL").reason, "the upstream reported MALFORMED_FUNCTION_CALL");
  assert.equal(brokenOff("error: my prompt").reason, "the upstream reported other");
  assert.equal(reported(undefined, undefined).reason, "the upstream reported an error");
});
