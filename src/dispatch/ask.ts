/**
 * The request to dispatch, and its result. Dispatch moves bytes and does not interpret them: the caller supplies the
 * encoder of each route, and an inspector that decides whether the first bytes of a reply are an answer.
 */
import type { Route } from "../values/catalog.ts";
import type { Cause, Refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";
import type { HeaderEdits } from "../values/rules.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { UpstreamErrorNames } from "../values/upstream-refusals.ts";
import type { Owner } from "./upstream/fair-queue.ts";

/** Causes that concern an upstream. */
export type UpstreamCause = Extract<Cause, `upstream_${string}`>;

/** Why an upstream's reply is not, or no longer, an answer. The same shape as convert's `UpstreamFault`. */
export interface ReplyFault {
  readonly cause: UpstreamCause;
  /** The upstream's own machine-readable code, if it gave one. */
  readonly code: string | undefined;
  /** For operators; never shown to a client. */
  readonly reason: string;
  /** The upstream's message about a request that it rejects, not yet cleaned. */
  readonly words?: string | undefined;
  /** Its code and the parameter that it blames, as it wrote them. */
  readonly names?: UpstreamErrorNames | undefined;
  /** What the upstream counted for a reply that is a failure. */
  readonly usage?: Usage | undefined;
  /** Whether a client can cause it by its request. */
  readonly canBeAskedFor?: boolean | undefined;
  /** Whether the model has failed, and not its server. */
  readonly ofModel?: boolean | undefined;
}

/** A request encoded for one route. `token` belongs to the caller (its conversion); dispatch only carries it. */
export interface AttemptRequest<T> {
  readonly body: Uint8Array;
  /** The operator's header rules, in order; they may go beyond `FORWARDED_HEADERS`. */
  readonly headers?: readonly HeaderEdits[];
  /** The tier that `body` asks for, for the bill; undefined for the standard tier. */
  readonly tier?: string | undefined;
  readonly token: T;
}

/**
 * Inspects a reply before it is accepted, so that a reply that begins with an error can still fail over. Inspected
 * bytes are not delivered again: the token has consumed them.
 */
export interface Inspector<T> {
  /** The next bytes of a stream; after `more`, the attempt can still fail over. */
  chunk(token: T, bytes: Uint8Array): "more" | "accept" | ReplyFault;
  /** The stream ended before anything was accepted. */
  end(token: T): "accept" | ReplyFault;
  /** A whole reply, complete. */
  whole(token: T, body: Uint8Array): "accept" | ReplyFault;
}

export interface DispatchAsk<T> {
  /** The client's: a server that speaks it blames members of the body by the names that the client wrote. */
  readonly protocol: Protocol;
  /** Every route of the model; dispatch orders them. */
  readonly routes: readonly Route[];
  readonly stream: boolean;
  /** Appended to the path of the upstream's protocol, for its side endpoints (`/count_tokens`, `/compact`). */
  readonly pathSuffix?: string | undefined;
  /** For side endpoints that are called without a body; default `POST`. */
  readonly method?: "POST" | "GET" | "DELETE" | undefined;
  /** The query without its `?`; undefined: none. */
  readonly query?: string | undefined;
  /** Client headers that may go upstream; names outside `FORWARDED_HEADERS` are dropped anyway. */
  readonly headers: readonly (readonly [string, string])[];
  /** End of the request's lifetime on the clock's `monotonicMs`, including retries and the whole stream. */
  readonly deadlineMs: number;
  /**
   * Aborts when the client disconnects. Observed until `run` resolves; after that, the caller uses
   * `UpstreamBody.abort`, and checks the signal once when it takes over the body.
   */
  readonly signal: AbortSignal;
  /** Who queues while upstreams are full; undefined: the request does not wait. */
  readonly owner?: Owner;
  /**
   * Whether it is sent even if the upstream is full: a question about a request that the upstream has begun to answer.
   * The running requests may have all slots until they know the answer.
   */
  readonly needsNoSlot?: boolean | undefined;
  /**
   * The kind of question whose answers are read a few at once, because they may be large and cost nothing; undefined:
   * the answer is read at once. The deadline is then that of the answer's head.
   */
  readonly readsInTurn?: "by_gateway" | "by_client" | undefined;
  /** Whose turn to read it is, in a fair order; undefined: in the order of all that name nobody. */
  readonly readsFor?: Owner | undefined;
  /** A hash that is constant through a conversation, so that its turns go to the same upstream if possible. */
  readonly conversation?: string | undefined;
  /** The upstream that ran a part of the request, if it is known. It comes before what the conversation suggests. */
  readonly prefers?: string | undefined;
  /** Encodes for a route; a refusal means that this route cannot carry the request. */
  encodeFor(route: Route): AttemptRequest<T> | Refusal;
  /**
   * Encodes for a route without the reasoning of earlier turns, which its upstream has just refused. Undefined if the
   * request would be the same, or if nothing may be left out.
   */
  withoutReasoning?(route: Route): AttemptRequest<T> | Refusal | undefined;
  readonly inspector: Inspector<T>;
}

/** One attempt at one upstream, for metrics, spans and absorbed costs. Times are on the clock's `monotonicMs`. */
export interface AttemptRecord {
  readonly upstream: string;
  /** The model's name at the upstream. */
  readonly model: string;
  readonly outcome: "ok" | "client_gone" | Cause;
  readonly status: number | undefined;
  /** For operators: our own text, or an inspector's; never shown to a client. */
  readonly reason: string;
  readonly startedAtMs: number;
  /** When the attempt was decided. */
  readonly endedAtMs: number;
  /** Decoded body bytes until the attempt was decided. */
  readonly bytesReceived: number;
  /** Whether any byte of the request was written to a connection: if so, its possible cost is absorbed. */
  readonly sentToUpstream: boolean;
  /** The requested tier, as in `AttemptRequest`. */
  readonly tier?: string | undefined;
  /** Whether the upstream itself refused, by status or by an error instead of an answer: that is not billed. */
  readonly refusedByUpstream: boolean;
  /** What the upstream counted for it, although it failed. */
  readonly usage?: Usage | undefined;
  /**
   * Whether a client can cause its failure: by an answer larger than can be buffered, a call that the model could not
   * write, or content that the server refused after the model had read it.
   */
  readonly askedFor?: boolean | undefined;
  /** Whether it was refused because of reasoning that its upstream did not produce. */
  readonly reasoningRefused?: boolean | undefined;
}

/** Receives a body in order: data, then exactly one `end` or `error`, then nothing. */
export interface BodySink {
  data(chunk: Uint8Array): void;
  end(): void;
  error(fault: ReplyFault): void;
}

/** The rest of a streamed reply, after the inspected part. */
export interface UpstreamBody {
  /** Starts the flow; once only. */
  consume(sink: BodySink): void;
  /**
   * Stops the flow, and also the upstream once BUFFERED_BYTES_MAX are buffered here. When the upstream has ended, the
   * buffered bytes are delivered anyway, unless the pause is firm.
   */
  pause(firmly?: boolean): void;
  resume(): void;
  /** Destroys the upstream's connection in this same tick; the sink is not called again. */
  abort(): void;
  /**
   * The answer is complete: what the upstream still sends is discarded, and its connection is kept if that is little.
   */
  discardRest(): void;
  /**
   * Whenever the upstream has been silent for its `idle` time, `isWorking` is asked before the body fails. If it is, the
   * silence may last as long again. It must not reject.
   */
  onSilence(isWorking: () => Promise<boolean>): void;
  /** Decoded body bytes so far, the inspected ones included. */
  readonly bytesReceived: number;
}

export interface Answered<T> {
  readonly answered: true;
  readonly route: Route;
  readonly token: T;
  readonly status: number;
  /**
   * `content-type` only: nothing else of an upstream's headers is trusted or passed on (docs/failure-model.md rows 61
   * and 62).
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for whole replies: the inspector has received them. */
  readonly body: UpstreamBody | undefined;
  readonly attempts: readonly AttemptRecord[];
}

/** No upstream answered. There is a refusal to send, unless the client has disconnected. */
export type Unanswered =
  | {
      readonly answered: false;
      readonly clientGone: false;
      readonly refusal: Refusal;
      readonly attempts: readonly AttemptRecord[];
    }
  | {
      readonly answered: false;
      readonly clientGone: true;
      readonly refusal: undefined;
      readonly attempts: readonly AttemptRecord[];
    };

/** Something that needs the operator: a refused credential, a model name that an upstream does not know. */
export interface DispatchWarning {
  readonly kind: "forbidden" | "model_not_found" | "tls" | "unexpected_status" | "unreachable" | "local";
  readonly upstream: string;
  readonly model: string;
  readonly status: number | undefined;
  readonly reason: string;
  /** Method and address. */
  readonly asked: string;
}
