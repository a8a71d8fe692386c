/**
 * `anthropic-beta` is a list: clients send it on one line or several, with blanks after the commas, and a front may join
 * lines. Each beta reaches the upstream once, whatever the spelling of the list.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { RequestHeaders } from "../../../src/accept/headers.ts";
import { forwardedHeaders } from "../../../src/request/conversion.ts";

test("betas on several lines, with blanks and repetitions, are sent as one list", () => {
  const headers = new RequestHeaders([
    ...["anthropic-version", "2023-06-01", "anthropic-beta", "one-2026-01-01, two-2026-02-02 ,one-2026-01-01"],
    ...["Anthropic-Beta", "three.3,\ttwo-2026-02-02, not a beta,,"],
  ]);
  assert.deepEqual(forwardedHeaders("messages", headers), [
    ["anthropic-version", "2023-06-01"],
    ["anthropic-beta", "one-2026-01-01,two-2026-02-02,three.3"],
  ]);
  assert.deepEqual(forwardedHeaders("chat", headers), []);
});
