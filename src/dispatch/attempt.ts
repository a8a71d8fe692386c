/**
 * One attempt: sends the request to one upstream and decides whether the reply is an answer. Until then, the request
 * can still fail over; from acceptance on, the bytes belong to the caller.
 */

import type { TransientList } from "../values/collections/transient.ts";
import type { Clock, Cohort } from "../values/time.ts";
import { codeOfMeaning } from "../values/upstream-refusals.ts";
import { quoted } from "../values/words/shown.ts";
import { withoutBom } from "../wire/utf8.ts";
import type { AttemptRecord, DispatchAsk, ReplyFault, UpstreamBody } from "./ask.ts";
import type { Choice } from "./choose.ts";
import {
  type AnsweringUpstream,
  canBeAskedFor,
  type Failure,
  type FailureKind,
  failure,
  failureOfFault,
  isRejection,
  kindOfRefusal,
  namesOf,
  rowOf,
} from "./failure.ts";
import { Call, type CallListener } from "./upstream/call.ts";
import { HandedBody } from "./upstream/handed-body.ts";
import type { HealthVerdict } from "./upstream/health.ts";
import type { ReadingTurn, ReadingTurns } from "./upstream/reading-turns.ts";
import { askedPauseS, isJsonType, type ReplyHead } from "./upstream/reply-head.ts";
import { readUpstreamWords } from "./upstream/words.ts";

/** The longest whole reply that is read. */
export const WHOLE_BYTES_MAX = 32 * 1024 * 1024;

/** How long after its head an answer that is read in turn may take, with the time in which it waits. */
const READ_IN_TURN_MS_MAX = 30_000;

/** Bytes of a stream that the inspector may leave undecided (docs/failure-model.md row C5). */
const INSPECTED_BYTES_MAX = 4 * 1024 * 1024;

/** How much of a refusal's body is read, and for how long: it is for a message, and a failover waits for it. */
const ERROR_BODY_BYTES_MAX = 64 * 1024;
const ERROR_BODY_MS = 1_000;

/** Statuses that can carry an answer; 202, 204, 205 and 206 have no body or only a part. */
const ANSWER_STATUSES: ReadonlySet<number> = new Set([200, 201, 203]);

/** Content types of streams; the bytes then show whether the body is one. */
const STREAM_TYPES: ReadonlySet<string> = new Set(["text/event-stream", "text/plain"]);

const TOO_LARGE = failure("too_large", `a whole reply over ${WHOLE_BYTES_MAX} bytes`);
const UNDECIDED = failure("too_large", `nothing to accept in the first ${INSPECTED_BYTES_MAX} bytes`);
const STOPPED = failure("stopped", "the gateway ended first");

export type AttemptResult =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: UpstreamBody | undefined;
      readonly record: AttemptRecord;
    }
  | { readonly kind: "failed"; readonly failure: Failure; readonly record: AttemptRecord }
  | { readonly kind: "client_gone"; readonly record: AttemptRecord };

/** An attempt that has neither an answer nor a failure yet. */
export interface UndecidedAttempt {
  /** The gateway ends: so does the attempt. */
  stop(): void;
}

interface AttemptParts {
  readonly clock: Clock;
  /** Groups what upstreams send in one turn of the event loop. */
  readonly cohort: Cohort;
  /** The attempt is in this list until it is decided. */
  readonly undecided: TransientList<UndecidedAttempt>;
}

/**
 * Runs one attempt. Releases the choice's slot when the upstream is done, and reports the outcome to its health.
 * @returns how it ended; rejects only when the inspector throws, which is a defect of ours.
 */
export function runAttempt<T>(ask: DispatchAsk<T>, choice: Choice<T>, parts: AttemptParts): Promise<AttemptResult> {
  return new Promise((resolve, reject) => new Attempt(ask, choice, parts, resolve, reject));
}

class Attempt<T> implements CallListener, UndecidedAttempt {
  readonly #ask: DispatchAsk<T>;
  readonly #choice: Choice<T>;
  readonly #clock: Clock;
  readonly #undecided: AttemptParts["undecided"];
  readonly #place: ReturnType<AttemptParts["undecided"]["add"]>;
  readonly #call: Call;
  readonly #resolve: (result: AttemptResult) => void;
  readonly #reject: (defect: unknown) => void;
  #phase: "head" | "refusal" | "whole" | "inspecting" | "decided" = "head";
  #head: ReplyHead | undefined = undefined;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #cancelRefusal: (() => void) | undefined = undefined;
  /** Undefined if the answer may be read at any time. */
  #readingTurn: ReadingTurn | undefined = undefined;

  constructor(
    ask: DispatchAsk<T>,
    choice: Choice<T>,
    { clock, cohort, undecided }: AttemptParts,
    resolve: (result: AttemptResult) => void,
    reject: (defect: unknown) => void,
  ) {
    this.#ask = ask;
    this.#choice = choice;
    this.#clock = clock;
    this.#undecided = undecided;
    this.#place = undecided.add(this);
    this.#resolve = resolve;
    this.#reject = reject;
    // Not `once`, which costs 0.2 us: the listener is removed when the attempt is decided, also when the client
    // disconnects.
    ask.signal.addEventListener("abort", this.#clientGone);
    const { stream, headers, deadlineMs, pathSuffix = "", method = "POST", query } = ask;
    const { upstream, slot, encoded } = choice;
    const { body, headers: headerEdits = [] } = encoded;
    const request = { stream, method, pathSuffix, query, body, headers, headerEdits, deadlineMs };
    this.#call = new Call(upstream, slot, clock, cohort, this);
    this.#call.start(request);
  }

  head(head: ReplyHead): void {
    this.#head = head;
    const isWhole = isJsonType(head.mediaType);
    // Some servers label a stream as plain text, and some send one object whatever was requested.
    const isNamed = head.mediaType !== "";
    const fitting = this.#ask.stream ? STREAM_TYPES.has(head.mediaType) || (isWhole && isNamed) : isWhole;
    if (!ANSWER_STATUSES.has(head.status)) this.#startRefusal();
    else if (!fitting) this.#fail(failure("bad_content_type", `content-type ${quoted(head.mediaType, 64)}`));
    else this.#phase = this.#ask.stream ? "inspecting" : "whole";
    const { readsInTurn } = this.#ask;
    if (this.#phase === "whole" && readsInTurn) this.#readInTurn(this.#choice.upstream.readingTurns[readsInTurn]);
  }

  #readInTurn(turns: ReadingTurns): void {
    this.#readingTurn = turns.take(() => this.#call.resume(), this.#ask.readsFor);
    if (!this.#readingTurn.isNow) this.#call.pause();
    this.#call.endBy(this.#clock.monotonicMs() + READ_IN_TURN_MS_MAX);
  }

  data(chunk: Uint8Array): void {
    if (this.#phase === "inspecting") this.#inspect(chunk);
    else if (this.#phase === "whole" && !this.#keep(chunk, WHOLE_BYTES_MAX)) this.#fail(TOO_LARGE);
    else if (this.#phase === "refusal" && !this.#keep(chunk, ERROR_BODY_BYTES_MAX)) this.#endRefusal();
  }

  end(): void {
    if (this.#phase === "refusal") this.#endRefusal();
    else if (this.#phase === "inspecting" || this.#phase === "whole") this.#judge(undefined);
  }

  failed(failed: Failure): void {
    // A refusal whose body broke off is still that refusal.
    if (this.#phase === "refusal" && failed.kind !== "deadline") this.#endRefusal();
    else this.#fail(failed);
  }

  defect(error: unknown): void {
    if (this.#phase === "decided") return;
    this.#decide("none");
    this.#reject(error);
  }

  /** @returns false if the body has become too long. */
  #keep(chunk: Uint8Array, bytesMax: number): boolean {
    this.#bytes += chunk.length;
    if (this.#bytes > bytesMax) return false;
    this.#chunks.push(chunk);
    return true;
  }

  #inspect(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes > INSPECTED_BYTES_MAX) this.#fail(UNDECIDED);
    else this.#judge(chunk);
  }

  /**
   * Asks the inspector. If it throws, that is a defect: this request fails, and its call to the upstream is aborted.
   * @param chunk of a stream; undefined at the end of a reply.
   */
  #judge(chunk: Uint8Array | undefined): void {
    let verdict: "more" | "accept" | ReplyFault;
    try {
      verdict = this.#verdict(chunk);
    } catch (defect) {
      this.#call.abort();
      this.defect(defect);
      return;
    }
    if (verdict === "accept") this.#accept();
    else if (verdict !== "more") this.#fail(failureOfFault(verdict, this.#answering));
  }

  #verdict(chunk: Uint8Array | undefined): "more" | "accept" | ReplyFault {
    const { inspector } = this.#ask;
    const { token } = this.#choice.encoded;
    if (chunk !== undefined) return inspector.chunk(token, chunk);
    return this.#phase === "whole" ? inspector.whole(token, this.#joined()) : inspector.end(token);
  }

  #accept(): void {
    const { status, contentType } = this.#head as ReplyHead;
    const ended = this.#call.over;
    const decidedMs = this.#decide("ok");
    const body = this.#ask.stream ? this.#handed() : undefined;
    if (ended) body?.end();
    this.#resolve({
      kind: "answered",
      status,
      headers: contentType === undefined ? {} : { "content-type": contentType },
      body,
      record: this.#record("ok", `status ${status}`, status, decidedMs),
    });
  }

  /** The body that takes over the stream. It holds nothing of the request, which is not retried any more. */
  #handed(): HandedBody {
    this.#noteFirstByte();
    const body = new HandedBody(
      this.#call,
      reportBreakOf(this.#choice, this.#call, this.#ask.pathSuffix === undefined),
    );
    this.#call.handTo(body);
    return body;
  }

  #noteFirstByte(): void {
    const { upstream, route } = this.#choice;
    const { startedAtMs, firstByteMs } = this.#call;
    if (firstByteMs !== undefined) upstream.firstBytes.add(route.upstreamModel, firstByteMs - startedAtMs);
  }

  #startRefusal(): void {
    this.#phase = "refusal";
    this.#cancelRefusal = this.#clock.after(ERROR_BODY_MS, () => this.#endRefusal());
  }

  #endRefusal(): void {
    const head = this.#head as ReplyHead;
    const { status } = head;
    const words = readUpstreamWords(this.#joined(), this.#choice.upstream.settings);
    if (words.tlsFault !== undefined && status === 400) {
      this.#fail(failure("tls_failed", `status 400: ${words.tlsFault}`, { status }));
      return;
    }
    const unknownModel = words.modelUnknown && (status === 400 || status === 422);
    // Usually, a 404 is about the model or the path.
    const ofItem = words.itemUnknown && status === 404;
    const plain = unknownModel ? "model_not_found" : ofItem ? "rejected" : kindOfRefusal(status, words.meaning);
    const kind = plain === "rejected" && words.reasoningRefused ? "reasoning_refused" : plain;
    this.#fail(
      failure(kind, kind === "reasoning_refused" ? `status ${status}, for reasoning of others` : `status ${status}`, {
        status,
        retryAfterS: askedPauseS(head, this.#clock.wallMs()),
        upstreamMessage: isRejection(kind) ? words.message : undefined,
        ...(isRejection(kind) && namesOf(words.names, codeOfMeaning(words.meaning), this.#answering)),
      }),
    );
  }

  get #answering(): AnsweringUpstream {
    const { upstream, route } = this.#choice;
    const isOfClientsProtocol = route.protocol === this.#ask.protocol;
    return { settings: upstream.settings, model: route.upstreamModel, isOfClientsProtocol };
  }

  #fail(failed: Failure): void {
    if (this.#phase === "decided") return;
    const row = rowOf(failed);
    const decidedMs = this.#decide(row.health, failed.retryAfterS);
    this.#call.abort();
    const status = this.#head?.status ?? failed.status;
    const { kind, usage } = failed;
    const reasoningRefused = kind === "reasoning_refused";
    const facts = {
      refusedByUpstream: isRefused(kind, status),
      usage,
      askedFor: canBeAskedFor(failed),
      reasoningRefused,
    };
    const record = this.#record(row.cause, failed.reason, status, decidedMs, facts);
    this.#resolve({ kind: "failed", failure: { ...failed, status }, record });
  }

  stop(): void {
    // An answer that was already read is delivered.
    this.#call.catchUp();
    this.#fail(STOPPED);
  }

  readonly #clientGone = (): void => {
    // An answer that was already read is billed by its own count.
    this.#call.catchUp();
    if (this.#phase === "decided") return;
    const decidedMs = this.#decide("none");
    this.#call.abort();
    const record = this.#record("client_gone", "the client left", this.#head?.status, decidedMs);
    this.#resolve({ kind: "client_gone", record });
  };

  /** @returns the time of the decision, on the clock's `monotonicMs`. */
  #decide(kind: HealthVerdict["kind"], retryAfterS?: number): number {
    this.#phase = "decided";
    const { probe, route, upstream } = this.#choice;
    const { startedAtMs } = this.#call;
    const decidedMs = this.#clock.monotonicMs();
    const verdict = this.#ask.pathSuffix === undefined ? kind : "none";
    upstream.health.report({ kind: verdict, model: route.upstreamModel, retryAfterS, startedAtMs, probe }, decidedMs);
    this.#cancelRefusal?.();
    this.#readingTurn?.end();
    this.#undecided.delete(this.#place);
    this.#ask.signal.removeEventListener("abort", this.#clientGone);
    return decidedMs;
  }

  /** The body so far, without a byte order mark, which a JSON parser may ignore (RFC 8259 section 8.1). */
  #joined(): Uint8Array {
    const [first] = this.#chunks;
    return withoutBom(this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks));
  }

  #record(
    outcome: AttemptRecord["outcome"],
    reason: string,
    status: number | undefined,
    endedAtMs: number,
    facts: Pick<AttemptRecord, "refusedByUpstream" | "usage" | "askedFor" | "reasoningRefused"> = NO_FACTS,
  ): AttemptRecord {
    const { refusedByUpstream, usage, askedFor, reasoningRefused } = facts;
    // Member by member: a spread costs as much as all the rest.
    return {
      upstream: this.#choice.upstream.settings.name,
      model: this.#choice.route.upstreamModel,
      outcome,
      status,
      reason,
      startedAtMs: this.#call.startedAtMs,
      endedAtMs,
      bytesReceived: this.#call.bytesReceived,
      sentToUpstream: this.#call.sent,
      tier: this.#choice.encoded.tier,
      refusedByUpstream,
      usage,
      askedFor,
      reasoningRefused,
    };
  }
}

const NO_FACTS = {
  refusedByUpstream: false,
  usage: undefined,
  askedFor: undefined,
  reasoningRefused: undefined,
} as const;

/**
 * Reports to the upstream's health that a stream has broken off. A probe was already decided when the stream began.
 * Side endpoints say nothing about the model path: an upstream may not have them.
 */
function reportBreakOf(
  { upstream, route }: Choice<unknown>,
  call: Call,
  isModelPath: boolean,
): (failed: Failure) => void {
  const model = route.upstreamModel;
  return (failed) => {
    const kind = isModelPath ? rowOf(failed).health : "none";
    const { retryAfterS } = failed;
    upstream.health.report({ kind, model, retryAfterS, startedAtMs: call.startedAtMs, probe: false });
  };
}

/** Failures that are an error instead of an answer. */
const REFUSALS: ReadonlySet<FailureKind> = new Set<FailureKind>([
  ...(["fault_unavailable", "fault_timeout", "rejected", "reasoning_refused"] as const),
  ...(["rate_limited", "beyond_rate", "forbidden", "denied", "model_not_found"] as const),
]);

function isRefused(kind: FailureKind, status: number | undefined): boolean {
  if (REFUSALS.has(kind)) return true;
  // A server that refuses our certificate after the handshake has not read the request.
  if (kind === "tls_failed" && status === undefined) return true;
  return status !== undefined && !ANSWER_STATUSES.has(status);
}
