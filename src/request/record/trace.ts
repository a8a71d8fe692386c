/**
 * The spans of one sampled request, collected while it runs: the request, admission, each attempt at an upstream, the
 * wait for the first token, settlement. Names follow the OpenTelemetry conventions for HTTP and for generative AI.
 * Attributes without a convention are `tollgate.*`, with the same name as in the log line. Prompts, keys and script
 * arguments are never attributes (docs/failure-model.md row 73).
 */
import type { AttemptRecord } from "../../dispatch/ask.ts";
import {
  type Attributes,
  newSpanId,
  type SpanFacts,
  type TraceIds,
  type Tracing,
  traceparentOf,
} from "../../telemetry/traces.ts";
import type { Route } from "../../values/catalog.ts";
import type { Protocol } from "../../values/protocol.ts";

/** The value of `gen_ai.provider.name` for each protocol: the conventions want the API's flavor, not the vendor. */
const PROVIDER: Readonly<Record<Protocol, string>> = { chat: "openai", responses: "openai", messages: "anthropic" };

interface StartedAttempt {
  readonly spanId: string;
  readonly route: Route;
}

/** Times are on the clock's `monotonicMs`. */
export class RequestTrace {
  readonly #tracing: Tracing;
  readonly #ids: TraceIds;
  /** Wall clock minus monotonic clock when the request began. */
  readonly #epochMs: number;
  readonly #spans: SpanFacts[] = [];
  readonly #started: StartedAttempt[] = [];

  constructor(tracing: Tracing, ids: TraceIds, epochMs: number) {
    this.#tracing = tracing;
    this.#ids = ids;
    this.#epochMs = epochMs;
  }

  get traceId(): string {
    return this.#ids.traceId;
  }

  /** Adds a span for a part of the request. */
  part(name: string, fromMs: number, toMs: number, attributes: Attributes = {}): void {
    this.#add({ name, kind: "internal", spanId: newSpanId(), fromMs, toMs, attributes });
  }

  /** An attempt is about to start. @returns the `traceparent` that its upstream may get. */
  attempting(route: Route): string {
    const spanId = newSpanId();
    this.#started.push({ spanId, route });
    return traceparentOf(this.#ids.traceId, spanId);
  }

  /**
   * Adds the attempts that were actually made, in order. An answered one ends with the request, because its stream goes
   * on.
   * @param untilMs when the request ended
   */
  attempts(records: readonly AttemptRecord[], untilMs: number, answered: Attributes): void {
    let from = 0;
    for (const record of records) {
      const index = this.#started.findIndex((one, at) => at >= from && one.route.upstream === record.upstream);
      const known = this.#started[index];
      if (!known) continue;
      from = index + 1;
      this.#attempt(known, record, untilMs, answered);
    }
  }

  #attempt({ spanId, route }: StartedAttempt, record: AttemptRecord, untilMs: number, answered: Attributes): void {
    const { startedAtMs, endedAtMs, outcome } = record;
    const failed = outcome !== "ok" && outcome !== "client_gone" && outcome !== "draining";
    this.#add({
      name: `chat ${record.model}`,
      kind: "client",
      spanId,
      fromMs: startedAtMs,
      toMs: outcome === "ok" ? untilMs : endedAtMs,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER[route.protocol],
        "gen_ai.request.model": record.model,
        "http.response.status_code": record.status,
        "error.type": failed ? outcome : undefined,
        "tollgate.upstream": record.upstream,
        "tollgate.outcome": outcome,
        ...(outcome === "ok" ? answered : {}),
      },
      error: failed ? outcome : undefined,
    });
  }

  /** The request is over: emits all spans. */
  finish(
    fromMs: number,
    toMs: number,
    facts: { path: string; attributes: Attributes; error: string | undefined },
  ): void {
    const { traceId, spanId, parentId } = this.#ids;
    this.#tracing.emit(traceId, [
      {
        name: `POST ${facts.path}`,
        kind: "server",
        spanId,
        parentId,
        startMs: this.#epochMs + fromMs,
        endMs: this.#epochMs + toMs,
        attributes: { "http.request.method": "POST", "http.route": facts.path, ...facts.attributes },
        error: facts.error,
      },
      ...this.#spans,
    ]);
  }

  #add(span: Omit<SpanFacts, "parentId" | "startMs" | "endMs"> & { fromMs: number; toMs: number }): void {
    const { fromMs, toMs, ...rest } = span;
    const times = { startMs: this.#epochMs + fromMs, endMs: this.#epochMs + toMs };
    this.#spans.push({ ...rest, ...times, parentId: this.#ids.spanId });
  }
}
