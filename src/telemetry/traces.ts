/**
 * What the rest of the program says to traces. Nothing instruments by itself: spans are made from facts once a request is
 * over, so that a request which is not sampled pays for one random number, and a process without traces for nothing.
 */
import { randomBytes } from "node:crypto";

/** The ids for a sampled request's spans. */
export interface TraceIds {
  /** 32 hex digits: the front's when it named one. */
  readonly traceId: string;
  /** The span of the front, if it named one. */
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
  /** A few words of ours when what the span covers has failed; never an upstream's or a client's text. */
  readonly error?: string | undefined;
}

export interface Tracing {
  /**
   * Decides by our own dice whether a request is traced.
   * @param traceparent as the front sent it (W3C Trace Context); its ids are continued, its sampled flag is not believed:
   *   a client could set it on every request (docs/failure-model.md row 74).
   */
  sample(traceparent: string | undefined): TraceIds | undefined;
  emit(traceId: string, spans: readonly SpanFacts[]): void;
  /** Sends what waits, for at most CLOSE_TIMEOUT_MS. */
  close(): Promise<void>;
}

/** No traces: no request is sampled. */
export const NO_TRACING: Tracing = { sample: () => undefined, emit() {}, close: () => Promise.resolve() };

/** @returns an id that a child span, or an upstream, may get before the span exists. */
export function newSpanId(): string {
  return randomBytes(8).toString("hex");
}

/** @returns the id of a trace that begins here. */
export function newTraceId(): string {
  return randomBytes(16).toString("hex");
}

/** The header that continues the trace at an upstream, sampled. */
export function traceparentOf(traceId: string, spanId: string): string {
  return `00-${traceId}-${spanId}-01`;
}
