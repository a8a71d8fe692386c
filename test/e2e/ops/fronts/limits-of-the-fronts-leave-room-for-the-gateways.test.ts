/**
 * Where the gateway and a front limit the same thing, the order matters: idle connections are closed by the front, because a
 * POST could be lost otherwise, and slow uploads by the gateway, because its 408 is in the client's protocol.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { HTTP_LIMITS } from "../../../../src/accept/http-limits.ts";

const read = (name: string) => readFileSync(new URL(`../../../../deploy/${name}`, import.meta.url), "utf8");
/** The first number that the pattern captures. */
const numberIn = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1]);

const UPLOAD_MS = HTTP_LIMITS.requestTimeoutMs + 2 * HTTP_LIMITS.checkingIntervalMs;

test("nginx closes idle connections before the gateway, and waits longer for a slow upload", () => {
  const nginx = read("nginx.conf");
  const upstream = /^upstream tollgate \{[\s\S]*?^\}/m.exec(nginx)?.[0] ?? "";
  assert.ok(numberIn(upstream, /keepalive_timeout (\d+)s;/) * 1_000 < HTTP_LIMITS.keepAliveTimeoutMs);
  assert.ok(numberIn(upstream, /keepalive_requests (\d+);/) < HTTP_LIMITS.requestsPerSocketMax);
  assert.ok(numberIn(nginx, /client_body_timeout (\d+)s;/) * 1_000 > UPLOAD_MS);
});

test("Envoy closes idle connections before the gateway, and does not limit uploads", () => {
  const envoy = read("envoy.yaml");
  assert.ok(numberIn(envoy, /idle_timeout: (\d+)s, max_requests/) * 1_000 < HTTP_LIMITS.keepAliveTimeoutMs);
  assert.ok(numberIn(envoy, /max_requests_per_connection: (\d+)/) < HTTP_LIMITS.requestsPerSocketMax);
  assert.equal(numberIn(envoy, /^ +request_timeout: (\d+)s/m), 0);
});
