/**
 * The shutdown of a process waits two seconds for a collector that accepts spans and does not answer, and no collector
 * can make it fail.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { createTracing } from "../../../src/telemetry/otlp.ts";
import type { Tracing } from "../../../src/telemetry/traces.ts";

const CLOSE_TIMEOUT_MS = 2_000;

/** Tracing that exports to a collector, with a span in its queue. */
async function tracingTo(t: TestContext, collector: RequestListener) {
  const server = createServer(collector);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
  const settings = { endpoint, headers: new Map(), serviceName: "test", sample: 1, exportEveryMs: 60_000 };
  const tracing: Tracing = createTracing(settings as never, () => 0, "1");
  tracing.emit("1".repeat(32), [
    { name: "a", kind: "server", spanId: "2".repeat(16), parentId: undefined, startMs: 1, endMs: 2, attributes: {} },
  ]);
  return tracing;
}

test("a collector that never answers is waited for two seconds", async (t) => {
  const asked = Promise.withResolvers<void>();
  const tracing = await tracingTo(t, () => asked.resolve());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let isClosed = false;
  void tracing.close().then(() => {
    isClosed = true;
  });
  await asked.promise;
  t.mock.timers.tick(CLOSE_TIMEOUT_MS - 1);
  await new Promise(setImmediate);
  assert.equal(isClosed, false);
  t.mock.timers.tick(1);
  await new Promise(setImmediate);
  assert.equal(isClosed, true);
});

test("a collector that refuses the spans does not make the shutdown fail", async (t) => {
  const tracing = await tracingTo(t, (_, response) => response.writeHead(400).end());
  await tracing.close();
});
