/** Spans wait for others no longer than the configuration says, so that an operator sees a request while it matters. */
import assert from "node:assert/strict";
import test from "node:test";
import { createTracing } from "../../../src/telemetry/otlp.ts";
import { startReceiver } from "../../rig/otlp-receiver.ts";

const EXPORT_EVERY_MS = 5_000;

test("a span waits as long as configured, and no longer", async (t) => {
  const received = Promise.withResolvers<void>();
  let exports = 0;
  const collector = await startReceiver(() => {
    exports++;
    received.resolve();
  });
  t.after(() => collector.stop());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const settings = {
    endpoint: `${collector.endpoint}/v1/traces`,
    headers: new Map(),
    serviceName: "test",
    sample: 1,
    propagate: new Set<string>(),
    exportEveryMs: EXPORT_EVERY_MS,
  };
  const tracing = createTracing(settings, () => 0, "1");
  tracing.emit("1".repeat(32), [
    { name: "a", kind: "server", spanId: "2".repeat(16), parentId: undefined, startMs: 1, endMs: 2, attributes: {} },
  ]);
  t.mock.timers.tick(EXPORT_EVERY_MS - 1);
  await new Promise(setImmediate);
  assert.equal(exports, 0);
  t.mock.timers.tick(1);
  await received.promise;
  assert.equal(exports, 1);
  await tracing.close();
});
