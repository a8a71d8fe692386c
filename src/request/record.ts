/**
 * What is recorded about one request while it runs, and at its end: one log line and the metrics. Labels come only from
 * the configuration; prompts and keys are never recorded.
 */
import type { PresentedKey } from "../accept/key.ts";
import type { Permit } from "../admit/permit.ts";
import type { AttemptRecord } from "../dispatch/ask.ts";
import type { Charge } from "../settle/charge.ts";
import { accountId } from "../store/names.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Attributes, Tracing } from "../telemetry/traces.ts";
import type { Catalog, Route } from "../values/catalog.ts";
import { type ErrorAnswer, isRefusal, type Refusal } from "../values/errors.ts";
import { containsKey } from "../values/key-search.ts";
import type { NanoUsd } from "../values/money.ts";
import type { Clock } from "../values/time.ts";
import { totalInput } from "../values/tokens/usage.ts";
import { resemblesCredential } from "../values/words/credential.ts";
import { quoted } from "../values/words/shown.ts";
import { reportCharge } from "./record/charge-report.ts";
import { lineText, type RequestLine } from "./record/line.ts";
import { RequestTrace } from "./record/trace.ts";

const MS_PER_S = 1_000;
/** The label for every member that no protocol lists. */
const UNLISTED = "unlisted";
/** The client disconnected before it had an answer: nginx's status for it. */
const CLIENT_GONE_STATUS = 499;

/** Makes the records of one process's requests. */
export interface Recorder {
  begin(facts: RecordFacts): RequestRecord;
}

/** What the headers of a request show. */
interface RecordFacts {
  /** As in `x-request-id`. */
  readonly requestId: string;
  /** The id that the trusted front has given to the request. */
  readonly frontRequest: string | undefined;
  /** The protocol of a model path, or `side`, which keeps cheap endpoints out of a protocol's latencies. */
  readonly protocol: string;
  /** Which of the side endpoints; for the log. */
  readonly endpoint?: string;
  /** On the clock's `monotonicMs`. */
  readonly receivedAtMs: number;
  /** The model path, for requests that may be traced. */
  readonly path?: string;
  /** As the front sent it; well-formed. */
  readonly traceparent?: string | undefined;
}

interface RecorderParts {
  readonly tracing: Tracing;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly catalog: () => Catalog;
}

interface RecordParts extends RecorderParts {
  /** The catalog's models as shown in log lines; no more than the configurations have had. */
  readonly shownModels: Map<string, string>;
}

interface RequestLabels {
  readonly protocol: string;
  readonly model: string;
  readonly group: string;
}

export function createRecorder(recorderParts: RecorderParts): Recorder {
  const parts = { ...recorderParts, shownModels: new Map<string, string>() };
  return { begin: (facts) => new RequestRecord(parts, facts) };
}

export class RequestRecord {
  readonly #parts: RecordParts;
  readonly #facts: RecordFacts;
  #model: string | undefined;
  #group: string | undefined;
  #accountId: string | undefined;
  #keyId: string | undefined;
  /** Computed once for the six uses; reset to undefined when one of the labels becomes known. */
  #labelled: RequestLabels | undefined;
  #bodyAtMs: number;
  #status = 0;
  #cause = "none";
  #streamEnd: string | undefined;
  #firstTokenMs: number | undefined;
  #attempts: readonly AttemptRecord[] = [];
  #charge: Charge | undefined;
  #answeredBy: string | undefined;
  #extensions = 0;
  #holdNano = 0n;
  #settlingSinceMs = 0;
  readonly #trace: RequestTrace | undefined;

  constructor(parts: RecordParts, facts: RecordFacts) {
    this.#parts = parts;
    this.#facts = facts;
    this.#bodyAtMs = facts.receivedAtMs;
    const { clock, metrics, tracing } = parts;
    metrics.inFlight.inc({ protocol: facts.protocol });
    const ids = facts.path === undefined ? undefined : tracing.sample(facts.traceparent);
    this.#trace = ids && new RequestTrace(tracing, ids, clock.wallMs() - clock.monotonicMs());
  }

  /** The last byte of the request has arrived: the time to the first token starts here. */
  bodyRead(): void {
    this.#bodyAtMs = this.#parts.clock.monotonicMs();
  }

  /** @param model as the client typed it; becomes a label only if the catalog has it. */
  asked(model: string): void {
    this.#model = model;
    this.#labelled = undefined;
  }

  admitted({ group: { name: group }, accountId, keyId, hold, clamped, heldWorstCase }: Permit): void {
    this.#group = group;
    this.#accountId = accountId;
    this.#keyId = keyId;
    this.#labelled = undefined;
    if (clamped !== undefined) this.#parts.metrics.unusualHolds.inc({ group, kind: "clamped" });
    if (heldWorstCase) this.#parts.metrics.unusualHolds.inc({ group, kind: "dearest" });
    this.#phase("admit", this.#bodyAtMs);
    this.#trace?.part("admit", this.#bodyAtMs, this.#parts.clock.monotonicMs(), { "tollgate.group": group });
    this.held(hold);
  }

  /** The amount held for the request from now on. */
  held(hold: NanoUsd): void {
    this.#parts.metrics.moveHolds(hold - this.#holdNano);
    this.#holdNano = hold;
  }

  /** Observes the latency since `sinceMs`, which the gateway itself added. */
  #phase(phase: string, sinceMs: number): void {
    const addedMs = this.#parts.clock.monotonicMs() - sinceMs;
    this.#parts.metrics.addedLatency.observe({ phase }, addedMs / MS_PER_S);
  }

  converted(sinceMs: number): void {
    this.#phase("convert", sinceMs);
  }

  /** An attempt is about to start. @returns the `traceparent` that its upstream may get, if the request is traced. */
  attempting(route: Route): string | undefined {
    return this.#trace?.attempting(route);
  }

  dispatched(attempts: readonly AttemptRecord[]): void {
    this.#attempts = attempts;
    const { metrics } = this.#parts;
    const last = attempts.at(-1);
    for (const attempt of attempts) {
      const { upstream, outcome, reasoningRefused } = attempt;
      metrics.attempts.inc({ upstream, outcome });
      if (reasoningRefused) metrics.reasoningRefused.inc({ upstream, retried: attempt === last ? "no" : "yes" });
    }
  }

  /**
   * Records the members of the client's request that the translation left out (ARCHITECTURE.md promise 9).
   * @param unlisted how many of the last ones no protocol lists: their names are chosen by the client, and become no
   *   label.
   */
  translated(to: string, dropped: readonly string[], unlisted: number): void {
    if (dropped.length === 0) return;
    const from = this.#facts.protocol;
    const { translationLoss } = this.#parts.metrics;
    for (const field of dropped.slice(0, dropped.length - unlisted)) translationLoss.inc({ from, to, field });
    if (unlisted > 0) translationLoss.inc({ from, to, field: UNLISTED }, unlisted);
  }

  /** The first semantic frame has been handed to the client. */
  firstToken(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#firstTokenMs = nowMs - this.#bodyAtMs;
    const last = this.#attempts.at(-1);
    const upstream = last?.upstream ?? "none";
    const { metrics } = this.#parts;
    const { protocol, model, group } = this.#labels();
    const labels = { protocol, model, group, upstream };
    metrics.firstToken.observe(labels, this.#firstTokenMs / MS_PER_S, this.#trace?.traceId);
    this.#trace?.part("first_token", this.#bodyAtMs, nowMs);
    if (last) metrics.upstreamFirstToken.observe({ upstream, model }, (nowMs - last.startedAtMs) / MS_PER_S);
  }

  answered(status: number): void {
    this.#status = status;
  }

  /** @param status as sent; some protocols use another status than the answer's. */
  refused(answer: ErrorAnswer, status: number): void {
    this.#status = status;
    this.#cause = answer.cause;
    const { metrics } = this.#parts;
    if (answer.identifier === "authentication_error" || answer.cause === "bad_keys") metrics.badKeys.inc({});
    if (answer.status === 429) metrics.rateLimited.inc({ group: this.#labels().group, limit: answer.cause });
  }

  /**
   * Records the group of a refused request; only existing keys have one.
   * @param key as presented. Its account is recorded only for a real key, because anybody can make up a key.
   */
  groupKnown(group: string | undefined, key: PresentedKey | Refusal): void {
    if (group === undefined) return;
    this.#group ??= group;
    this.#labelled = undefined;
    if (key !== "noise" && !isRefusal(key)) this.#accountId ??= accountId(key.tag);
  }

  /** The key of a request that costs nothing and is therefore not admitted. */
  keyKnown({ id, group }: { readonly id: string; readonly group: string }, key: PresentedKey | Refusal): void {
    this.groupKnown(group, key);
    this.#keyId = id;
  }

  streamEnded(reason: string): void {
    this.#streamEnd = reason;
    const { metrics } = this.#parts;
    metrics.streamEnds.inc({ protocol: this.#facts.protocol, reason });
    if (reason !== "client_gone") return;
    const upstream = this.#attempts.at(-1)?.upstream ?? "none";
    const counted = this.#charge?.metered?.counted ?? "estimate";
    metrics.leftStreams.inc({ upstream, model: this.#labels().model, counted });
  }

  /** The upstream was asked about the answer that it keeps. */
  askedKept(upstream: string, outcome: string): void {
    this.#parts.metrics.keptQuestions.inc({ upstream, outcome });
  }

  /** The store was asked to raise the hold of a stream near its edge. */
  extended(outcome: string): void {
    this.#extensions++;
    this.#parts.metrics.holdExtensions.inc({ group: this.#labels().group, outcome });
  }

  /** @param name of the model that answered according to the upstream, if it is not the requested one. */
  answeredBy(name: string | undefined, { upstream }: Route): void {
    if (name === undefined) return;
    this.#answeredBy = name;
    this.#parts.metrics.otherModel.inc({ upstream, model: this.#labels().model });
  }

  charged(charge: Charge): void {
    this.#charge = charge;
    this.#settlingSinceMs = this.#parts.clock.monotonicMs();
    const { group, model } = this.#labels();
    const upstream = this.#attempts.at(-1)?.upstream ?? "none";
    reportCharge(charge, { requestId: this.#facts.requestId, group, model, upstream }, this.#parts);
    if (charge.metered && !charge.ask.voided) this.#pace(charge.metered.usage.output, this.#settlingSinceMs);
  }

  /** The charge is durable; the end of the client's answer has waited for this. */
  settled(): void {
    this.#phase("relay", this.#settlingSinceMs);
    this.#trace?.part("settle", this.#settlingSinceMs, this.#parts.clock.monotonicMs());
  }

  /** Output speed of the upstream: output tokens over the time from the first semantic event to the end of a stream. */
  #pace(outputTokens: number, nowMs: number): void {
    if (this.#firstTokenMs === undefined || outputTokens === 0) return;
    const writingMs = nowMs - this.#bodyAtMs - this.#firstTokenMs;
    const upstream = this.#attempts.at(-1)?.upstream ?? "none";
    if (writingMs > 0) {
      const pace = outputTokens / (writingMs / MS_PER_S);
      this.#parts.metrics.outputPace.observe({ model: this.#labels().model, upstream }, pace);
    }
  }

  /** A defect of the gateway: logged with its stack, answered without it. */
  crashed(error: unknown): void {
    const { log } = this.#parts;
    log.error({ request: this.#facts.requestId, err: describe(error) }, "a request failed on a defect of the gateway");
  }

  finish(): void {
    const { metrics, clock, log } = this.#parts;
    if (this.#status === 0) {
      this.#status = CLIENT_GONE_STATUS;
      this.#cause = "client_gone";
    }
    const labels = this.#labels();
    const durationMs = clock.monotonicMs() - this.#facts.receivedAtMs;
    metrics.inFlight.dec({ protocol: this.#facts.protocol });
    metrics.moveHolds(-this.#holdNano);
    const { protocol, model, group } = labels;
    metrics.requests.inc({ protocol, model, group, status: String(this.#status), cause: this.#cause });
    metrics.requestDuration.observe(labels, durationMs / MS_PER_S, this.#trace?.traceId);
    const line = this.#line(durationMs);
    log.written(lineText(line), "request");
    if (this.#trace) this.#finishTrace(this.#trace, line);
  }

  /** The members of the request's log line, which are also the attributes of its span. */
  #line(durationMs: number): RequestLine {
    const usage = this.#charge?.metered?.usage;
    const unpaidCalls = this.#charge?.unpaidCalls;
    return {
      request: this.#facts.requestId,
      trace: this.#trace?.traceId,
      front_request: this.#facts.frontRequest,
      protocol: this.#facts.protocol,
      endpoint: this.#facts.endpoint,
      status: this.#status,
      cause: this.#cause,
      model: this.#shownModel(),
      group: this.#group,
      account_id: this.#accountId,
      key_id: this.#keyId,
      upstream: this.#attempts.at(-1)?.upstream,
      answered_by: this.#answeredBy === undefined ? undefined : quoted(this.#answeredBy),
      attempts: this.#attempts.length,
      attempt_reasons: this.#attemptReasons(),
      stream_end: this.#streamEnd,
      hold_extensions: this.#extensions || undefined,
      first_token_ms: this.#firstTokenMs === undefined ? undefined : Math.round(this.#firstTokenMs),
      duration_ms: Math.round(durationMs),
      input_tokens: usage && totalInput(usage),
      output_tokens: usage?.output,
      counted: this.#charge?.metered?.counted,
      unpaid_tool_calls: unpaidCalls?.length
        ? unpaidCalls.map(({ tool, calls, reason }) => `${tool}: ${calls} ${reason}`)
        : NOTHING,
      charged_nano_usd: this.#charge && !this.#charge.ask.voided ? String(this.#charge.ask.amount) : undefined,
    };
  }

  #attemptReasons(): readonly string[] {
    let reasons = NOTHING;
    for (const { outcome, upstream, reason } of this.#attempts)
      if (outcome !== "ok") reasons = [...reasons, `${upstream}: ${reason}`];
    return reasons;
  }

  /**
   * The model for the log and the span. Searching a name for credentials takes microseconds; the result for a model of
   * the catalog is always the same, and only other names can be credentials of another service.
   */
  #shownModel(): string | undefined {
    const model = this.#model;
    if (model === undefined) return undefined;
    const { shownModels, catalog } = this.#parts;
    const known = shownModels.get(model);
    if (known !== undefined) return known;
    const isConfigured = catalog().models.has(model);
    const shown = shownModel(model, isConfigured);
    if (isConfigured) shownModels.set(model, shown);
    return shown;
  }

  /** Reasons of attempts are only logged, because they may contain an address. */
  #finishTrace(trace: RequestTrace, { trace: _, attempt_reasons: __, ...line }: RequestLine): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const usage = this.#charge?.metered?.usage;
    trace.attempts(this.#attempts, nowMs, {
      "gen_ai.usage.input_tokens": line.input_tokens,
      "gen_ai.usage.output_tokens": line.output_tokens,
      "gen_ai.usage.cache_read.input_tokens": usage?.cachedInput,
      "gen_ai.usage.cache_creation.input_tokens": usage && usage.cacheWrite + usage.cacheWrite1h,
      "gen_ai.usage.reasoning.output_tokens": usage?.reasoning,
    });
    const attributes: Record<string, Attributes[string]> = { "http.response.status_code": this.#status };
    for (const [name, value] of Object.entries(line)) attributes[`tollgate.${name}`] = value;
    const failed = this.#status >= 500 || this.#cause.startsWith("upstream_") || isFailedEnd(this.#streamEnd);
    const error = failed ? (this.#streamEnd ?? this.#cause) : undefined;
    if (error !== undefined) attributes["error.type"] = error;
    trace.finish(this.#facts.receivedAtMs, nowMs, { path: this.#facts.path ?? "", attributes, error });
  }

  #labels(): RequestLabels {
    if (this.#labelled) return this.#labelled;
    const known = this.#model !== undefined && this.#parts.catalog().models.has(this.#model);
    const model = known ? (this.#model as string) : this.#model === undefined ? "none" : "unknown";
    this.#labelled = { protocol: this.#facts.protocol, model, group: this.#group ?? "none" };
    return this.#labelled;
  }
}

const NOTHING: readonly string[] = [];

/** More characters than are ever shown, with room for a key that is percent-encoded. */
const SEARCHED_CHARS = 1_024;

/**
 * The model as its client typed it. Some clients send their key as the model, or a key of another service, and neither
 * may reach the log.
 */
function shownModel(model: string, isConfigured: boolean): string {
  const searched = model.slice(0, SEARCHED_CHARS);
  return containsKey(searched) || (!isConfigured && resemblesCredential(searched)) ? "***" : quoted(model);
}

function describe(error: unknown): { message: string; stack: string | undefined } {
  return error instanceof Error
    ? { message: error.message, stack: error.stack }
    : { message: String(error), stack: undefined };
}

/** Whether a stream ended in a way that neither client nor operator wanted. */
function isFailedEnd(reason: string | undefined): boolean {
  return reason !== undefined && reason !== "complete" && reason !== "client_gone" && reason !== "brake";
}
