/** A batch of spans goes to the collector as soon as the one before has arrived, and what waits meanwhile is limited. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { createTracing } from "../../../src/telemetry/otlp.ts";
import type { SpanFacts } from "../../../src/telemetry/traces.ts";
import { startReceiver } from "../../rig/otlp-receiver.ts";

/** The limits of the code under test: spans that wait, and spans of one batch. */
const WAITING_MAX = 8_192;
const BATCH_MAX = 512;

const SPAN: SpanFacts = {
  name: "a",
  kind: "server",
  spanId: "2".repeat(16),
  parentId: undefined,
  startMs: 1,
  endMs: 2,
  attributes: {},
};

interface Received {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly object[] }[] }[];
}

/** Tracing whose collector calls `onBatch` with the number of spans in each batch. */
async function tracingTo(t: TestContext, onBatch: (spans: number) => void) {
  const collector = await startReceiver((json) => {
    const { resourceSpans } = JSON.parse(json) as Received;
    onBatch(resourceSpans[0]?.scopeSpans[0]?.spans.length ?? 0);
  });
  t.after(() => collector.stop());
  const endpoint = `${collector.endpoint}/v1/traces`;
  const propagate = new Set<string>();
  const settings = { endpoint, headers: new Map(), serviceName: "test", sample: 1, propagate, exportEveryMs: 20 };
  return createTracing(settings, () => 0, "1");
}

// An export that is never reported as done would hold the next one up for ten seconds.
test("a later span is exported without waiting for a time limit", { timeout: 8_000 }, async (t) => {
  const batches: number[] = [];
  let arrived = Promise.withResolvers<void>();
  const tracing = await tracingTo(t, (spans) => {
    batches.push(spans);
    arrived.resolve();
  });
  for (let at = 0; at < 3; at++) {
    arrived = Promise.withResolvers<void>();
    tracing.emit("1".repeat(32), [SPAN]);
    await arrived.promise;
  }
  assert.deepEqual(batches, [1, 1, 1]);
  await tracing.close();
});

test("of many spans at once, those beyond the queue are dropped", { timeout: 60_000 }, async (t) => {
  const batches: number[] = [];
  let arrived = Promise.withResolvers<void>();
  const tracing = await tracingTo(t, (spans) => {
    batches.push(spans);
    arrived.resolve();
  });
  tracing.emit("1".repeat(32), Array(3 * WAITING_MAX).fill(SPAN));
  // One batch is on its way while the queue is full.
  while (sum(batches) < WAITING_MAX + BATCH_MAX) {
    await arrived.promise;
    arrived = Promise.withResolvers<void>();
  }
  tracing.emit("1".repeat(32), [SPAN]);
  await arrived.promise;
  assert.deepEqual(batches.at(-1), 1, "no other span has waited");
  await tracing.close();
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
