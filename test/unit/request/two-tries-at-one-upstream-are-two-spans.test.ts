/**
 * A request may try the same upstream twice, for example without the reasoning that it has refused. Each try has its own
 * span, whose id is in the `traceparent` of that try.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { AttemptRecord } from "../../../src/dispatch/ask.ts";
import { RequestTrace } from "../../../src/request/record/trace.ts";
import type { SpanFacts, Tracing } from "../../../src/telemetry/traces.ts";
import type { Route } from "../../../src/values/catalog.ts";
import { MODEL } from "../../endurance/simulation/catalog.ts";

test("the spans of two tries at one upstream have the ids and the outcomes of their tries, in order", () => {
  const emitted: SpanFacts[] = [];
  const tracing = { emit: (_: string, spans: readonly SpanFacts[]) => void emitted.push(...spans) };
  const ids = { traceId: "0".repeat(31).concat("1"), parentId: undefined, spanId: "a".repeat(16) };
  const trace = new RequestTrace(tracing as unknown as Tracing, ids, 0);
  const [route] = MODEL.routes as [Route];
  const sent = [trace.attempting(route), trace.attempting(route)];
  const record = (startedAtMs: number, endedAtMs: number, outcome: string) =>
    ({ upstream: route.upstream, model: route.upstreamModel, outcome, startedAtMs, endedAtMs }) as AttemptRecord;
  trace.attempts([record(10, 15, "upstream_rejected"), record(20, 30, "ok")], 50, {});
  trace.finish(0, 50, { path: "/v1/messages", attributes: {}, error: undefined });
  const tries = emitted.filter(({ kind }) => kind === "client");
  assert.deepEqual(
    tries.map(({ spanId }) => spanId),
    sent.map((traceparent) => traceparent.split("-")[2]),
  );
  assert.deepEqual(
    tries.map(({ startMs, endMs, error }) => [startMs, endMs, error]),
    [
      [10, 15, "upstream_rejected"],
      [20, 50, undefined],
    ],
  );
});
