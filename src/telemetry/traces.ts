/**
 * The interface between the program and tracing. There is no automatic instrumentation: spans are made from facts after
 * a request has ended. A request that is not sampled costs one random number, and a process without traces costs
 * nothing.
 */
import { randomBytes } from "node:crypto";

/** The ids for a sampled request's spans. */
export interface TraceIds {
  /** 32 hex digits; the front's trace id if it sent one. */
  readonly traceId: string;
  /** The front's span, if it sent one. */
  readonly parentId: string | undefined;
  /** The request's own span. */
  readonly spanId: string;
}

export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** A span, reported once it is over. Times are milliseconds since the epoch. */
export interface SpanFacts {
  readonly name: string;
  readonly kind: "server" | "client" | "internal";
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly events?: readonly { readonly name: string; readonly atMs: number }[];
  /** A short text of ours if the operation has failed; never an upstream's or a client's text. */
  readonly error?: string | undefined;
}

export interface Tracing {
  /**
   * Decides at random whether a request is traced.
   * @param traceparent as the front sent it (W3C Trace Context). Its ids are continued. Its sampled flag is not
   *   trusted, because a client could set it on every request (docs/failure-model.md row 74).
   */
  sample(traceparent: string | undefined): TraceIds | undefined;
  emit(traceId: string, spans: readonly SpanFacts[]): void;
  /** Sends waiting spans, for at most CLOSE_TIMEOUT_MS. */
  close(): Promise<void>;
}

/** No traces: no request is sampled. */
export const NO_TRACING: Tracing = { sample: () => undefined, emit() {}, close: () => Promise.resolve() };

/** @returns an id that can be given to a child span or an upstream before the span exists. */
export function newSpanId(): string {
  return randomBytes(8).toString("hex");
}

/** @returns the id of a trace that begins here. */
export function newTraceId(): string {
  return randomBytes(16).toString("hex");
}

/** The traceparent header that continues the trace at an upstream, with the sampled flag set. */
export function traceparentOf(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}
