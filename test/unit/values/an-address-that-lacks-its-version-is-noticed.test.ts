/** An operator who leaves the version out of a `base_url` is told what it probably lacks; one who did not is not bothered. */
import assert from "node:assert/strict";
import test from "node:test";
import { PROTOCOL_NAMES, withoutEndpoint, withVersion } from "../../../src/values/protocol.ts";

test("an address without a path lacks /v1 on every protocol, but for a server known to have none", () => {
  for (const protocol of PROTOCOL_NAMES) {
    assert.equal(withVersion("https://models.example", protocol), "https://models.example/v1");
    assert.equal(withVersion("https://models.example//", protocol), "https://models.example/v1");
    assert.equal(withVersion("https://models.example/v1", protocol), undefined);
    assert.equal(withVersion("https://models.example/api/v2beta/", protocol), undefined);
  }
  assert.equal(withVersion("https://api.deepseek.com", "chat"), undefined);
});

test("behind another path only a messages server lacks it", () => {
  assert.equal(withVersion("https://models.example/api", "messages"), "https://models.example/api/v1");
  assert.equal(withVersion("https://models.example/api", "chat"), undefined);
  assert.equal(withVersion("https://models.example/api", "responses"), undefined);
});

test("an endpoint's own path is taken off, with slashes after it or without", () => {
  assert.equal(withoutEndpoint("https://models.example/v1/chat/completions"), "https://models.example/v1");
  assert.equal(withoutEndpoint("https://models.example/v1/messages//"), "https://models.example/v1");
  assert.equal(withoutEndpoint("https://models.example/v1/responses"), "https://models.example/v1");
  for (const kept of ["https://models.example/v1", "https://models.example/responses/v1"]) {
    assert.equal(withoutEndpoint(kept), undefined, kept);
  }
});
