/** Of a client's headers, an upstream gets those that mean something to it and nothing to the gateway. */
import assert from "node:assert/strict";
import test from "node:test";
import { compileRequestHead } from "../../../src/dispatch/upstream/request-head.ts";
import type { Protocol } from "../../../src/values/protocol.ts";
import { upstream } from "./rig.ts";

const SENT = [
  ["Anthropic-Beta", "one"],
  ["anthropic-version", "2024-01-01"],
  ["openai-beta", "two"],
  ["traceparent", "00-1-2-01"],
  ["tracestate", "vendor=3"],
] as const;

const FORWARDED: Readonly<Record<Protocol, readonly string[]>> = {
  chat: [],
  responses: [],
  messages: ["anthropic-beta", "anthropic-version"],
};

for (const protocol of ["chat", "responses", "messages"] as const) {
  test(`${protocol}: the version and the betas of messages are forwarded as the client sent them, and nothing else`, () => {
    const head = compileRequestHead(upstream("east", "http://127.0.0.1/v1", { protocol }))(false, SENT, []);
    const sent = new Map(SENT.map(([name, value]) => [name.toLowerCase(), value]));
    const found = head.filter((name, at) => at % 2 === 0 && head[at + 1] === sent.get(name));
    assert.deepEqual(found.toSorted(), FORWARDED[protocol]);
  });
}
