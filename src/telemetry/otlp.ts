/**
 * Traces by OpenTelemetry, exported as OTLP over HTTP (protobuf); the only file that imports it. It is loaded only if
 * traces are configured: its 240 files take a tenth of the start of a checkout. Nothing is registered globally.
 */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  type SpanExporter,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { codeOfFailure } from "../values/program/error-text.ts";
import type { TraceSettings } from "../values/settings.ts";
import { newSpanId, newTraceId, type Tracing } from "./traces.ts";

/** Maximum of spans that wait for the collector. Above it spans are dropped; requests are not affected. */
const QUEUE_SPANS_MAX = 8_192;
const BATCH_SPANS_MAX = 512;
const EXPORT_TIMEOUT_MS = 10_000;
/** How long the process waits for a collector at its end. */
const CLOSE_TIMEOUT_MS = 2_000;

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/**
 * @param random a number from 0 (included) to 1; @param version the program's, for the resource; @param onFailure called
 * when the collector has not taken spans, which are lost: with a status, or the code of a failed connection.
 */
export function createTracing(
  settings: TraceSettings,
  random: () => number,
  version: string,
  onFailure: (reason: string) => void = () => undefined,
): Tracing {
  const ids = new PresetIds();
  const exporter = new OTLPTraceExporter({
    url: settings.endpoint,
    headers: Object.fromEntries([...settings.headers].map(([name, value]) => [name, value.reveal()])),
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": settings.serviceName, "service.version": version }),
    sampler: new AlwaysOnSampler(), // `sample` has already decided.
    idGenerator: ids,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reported(exporter, onFailure),
        maxQueueSize: QUEUE_SPANS_MAX,
        maxExportBatchSize: BATCH_SPANS_MAX,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
        scheduledDelayMillis: settings.exportEveryMs,
      }),
    ],
  });
  const tracer = provider.getTracer("tollgate", version);
  return {
    sample(traceparent) {
      if (random() >= settings.sample) return undefined;
      const [, traceId, parentId] = traceparent?.split("-") ?? [];
      return { traceId: traceId ?? newTraceId(), parentId, spanId: newSpanId() };
    },
    emit(traceId, spans) {
      for (const { name, kind, spanId, parentId, startMs, endMs, attributes, events = [], error } of spans) {
        ids.next(traceId, spanId);
        const parent =
          parentId === undefined
            ? ROOT_CONTEXT
            : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parentId, traceFlags: TraceFlags.SAMPLED });
        const known = Object.entries(attributes).filter(([, value]) => value !== undefined);
        const span = tracer.startSpan(
          name,
          { kind: KINDS[kind], startTime: startMs, attributes: Object.fromEntries(known) as never },
          parent,
        );
        for (const event of events) span.addEvent(event.name, event.atMs);
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
        span.end(endMs);
      }
    },
    async close() {
      // An unavailable collector must not delay the end of the process, and is not reported as a defect.
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, CLOSE_TIMEOUT_MS);
      await Promise.race([provider.shutdown().catch(() => undefined), promise]);
      clearTimeout(timer);
    },
  };
}

/** The processor drops the result of an export, and OpenTelemetry's own log is not used here. */
function reported(exporter: SpanExporter, onFailure: (reason: string) => void): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.code !== 0) onFailure(reasonOf(result.error));
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Without the message of the failure, which may quote the collector's answer. */
function reasonOf(error: (Error & { readonly code?: unknown }) | undefined): string {
  return typeof error?.code === "number" ? `status ${error.code}` : codeOfFailure(error);
}

/** Gives each span the id that was decided when the request began; the SDK asks for it in the same tick. */
class PresetIds implements IdGenerator {
  #traceId = "";
  #spanId = "";

  next(traceId: string, spanId: string): void {
    this.#traceId = traceId;
    this.#spanId = spanId;
  }

  generateTraceId(): string {
    return this.#traceId;
  }

  generateSpanId(): string {
    return this.#spanId;
  }
}
