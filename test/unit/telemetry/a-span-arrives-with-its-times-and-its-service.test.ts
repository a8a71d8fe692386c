/** What a collector decodes: the service and its version, and each event of a span at its own instant. */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { createTracing } from "../../../src/telemetry/otlp.ts";
import { startReceiver } from "../../rig/otlp-receiver.ts";

const STARTED_MS = 1_790_000_000_000;

interface Received {
  readonly resource: { readonly attributes: readonly { readonly key: string; readonly value: object }[] };
  readonly scopeSpans: readonly {
    readonly spans: readonly {
      readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
      readonly status?: { readonly code?: number; readonly message?: string };
    }[];
  }[];
}

/** What arrives of a span of one second with two events. */
async function receivedOf(t: TestContext, error?: string): Promise<Received> {
  const bodies: string[] = [];
  const collector = await startReceiver((json) => void bodies.push(json));
  t.after(() => collector.stop());
  const settings = {
    endpoint: `${collector.endpoint}/v1/traces`,
    headers: new Map(),
    serviceName: "gate-of-tests",
    sample: 1,
    propagate: new Set<string>(),
    exportEveryMs: 60_000,
  };
  const tracing = createTracing(settings, () => 0, "1.2.3");
  const events = [
    { name: "first", atMs: STARTED_MS + 250 },
    { name: "second", atMs: STARTED_MS + 750 },
  ];
  const times = { startMs: STARTED_MS, endMs: STARTED_MS + 1_000 };
  tracing.emit("1".repeat(32), [
    { name: "a", kind: "server", spanId: "2".repeat(16), parentId: undefined, ...times, attributes: {}, events, error },
  ]);
  await tracing.close();
  return JSON.parse(bodies[0] ?? "").resourceSpans[0];
}

test("an event of a span keeps its own instant", async (t) => {
  const { scopeSpans } = await receivedOf(t);
  const events = scopeSpans[0]?.spans[0]?.events.map(({ name, timeUnixNano }) => [name, timeUnixNano]);
  assert.deepEqual(events, [
    ["first", "1790000000250000000"],
    ["second", "1790000000750000000"],
  ]);
});

test("spans name the service of the configuration and the version of the program", async (t) => {
  const { resource } = await receivedOf(t);
  const named = new Map(resource.attributes.map(({ key, value }) => [key, value]));
  assert.deepEqual(named.get("service.name"), { stringValue: "gate-of-tests" });
  assert.deepEqual(named.get("service.version"), { stringValue: "1.2.3" });
});

test("the span of what has failed says why", async (t) => {
  const { scopeSpans } = await receivedOf(t, "no upstream answered");
  assert.deepEqual(scopeSpans[0]?.spans[0]?.status, { code: 2, message: "no upstream answered" });
});
