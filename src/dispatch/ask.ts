/**
 * What dispatch is asked and what it gives back. Dispatch moves bytes and understands none: the caller brings the
 * encoder of each route and an inspector that says whether the first bytes of a reply are an answer.
 */
import type { Route } from "../values/catalog.ts";
import type { Cause, Refusal } from "../values/errors.ts";
import type { HeaderEdits } from "../values/rules.ts";
import type { Usage } from "../values/tokens/usage.ts";
import type { Owner } from "./upstream/fair-queue.ts";

/** Causes that speak of an upstream. */
export type UpstreamCause = Extract<Cause, `upstream_${string}`>;

/** Why an upstream's reply is not, or no longer, an answer. The same shape as convert's `UpstreamFault`. */
export interface ReplyFault {
  readonly cause: UpstreamCause;
  /** The upstream's own machine-readable code, if it gave one. */
  readonly code: string | undefined;
  /** For operators; never shown to a client. */
  readonly reason: string;
  /** What the upstream says of a request that it rejects, not yet cleaned. */
  readonly words?: string | undefined;
  /** What the upstream counted for a reply that is a failure. */
  readonly usage?: Usage | undefined;
  /** Whether a client can bring it about by what it asks for. */
  readonly canBeAskedFor?: boolean | undefined;
  /** Whether the model has failed, and not its server. */
  readonly ofModel?: boolean | undefined;
}

/** A request made for one route. `token` is the asker's own (its conversion); dispatch only carries it. */
export interface AttemptRequest<T> {
  readonly body: Uint8Array;
  /** The operator's rules for the head, in their order; they are not held to `FORWARDED_HEADERS`. */
  readonly headers?: readonly HeaderEdits[];
  /** The tier that `body` asks for, for the bill; undefined for the standard one. */
  readonly tier?: string | undefined;
  readonly token: T;
}

/**
 * Looks at a reply before it is accepted, so that a reply that begins with an error can still be failed over. Bytes
 * that were inspected are not given again: the token has consumed them.
 */
export interface Inspector<T> {
  /** The next bytes of a stream; `more` keeps the attempt open to failover. */
  chunk(token: T, bytes: Uint8Array): "more" | "accept" | ReplyFault;
  /** The stream ended before anything was accepted. */
  end(token: T): "accept" | ReplyFault;
  /** A whole reply, complete. */
  whole(token: T, body: Uint8Array): "accept" | ReplyFault;
}

export interface DispatchAsk<T> {
  /** Every route of the model; dispatch orders them. */
  readonly routes: readonly Route[];
  readonly stream: boolean;
  /** Appended to the path of the upstream's protocol, for its side endpoints (`/count_tokens`, `/compact`). */
  readonly pathSuffix?: string | undefined;
  /** For side endpoints that are asked without a body; `POST` unless given. */
  readonly method?: "POST" | "GET" | "DELETE" | undefined;
  /** The query without its `?`; undefined: none. */
  readonly query?: string | undefined;
  /** Client headers that may go upstream; names outside `FORWARDED_HEADERS` are dropped anyway. */
  readonly headers: readonly (readonly [string, string])[];
  /** End of the request's life on the clock's `monotonicMs`, retries and the whole stream included. */
  readonly deadlineMs: number;
  /**
   * Aborts when the client is gone. Heeded until `run` resolves; from there on `UpstreamBody.abort` is the way, and
   * the asker looks at the signal once when it takes the body over.
   */
  readonly signal: AbortSignal;
  /** Whose turn it is while upstreams are full; undefined: it does not wait. */
  readonly owner?: Owner;
  /** A hash that stays the same through a conversation, so that its turns go to the same upstream where they can. */
  readonly conversation?: string | undefined;
  /** The upstream that a conversation comes from, where that is known better than by what was remembered of it. */
  readonly prefers?: string | undefined;
  /** Encodes for a route; a refusal says that this route cannot carry the request. */
  encodeFor(route: Route): AttemptRequest<T> | Refusal;
  /**
   * Encodes for a route without the reasoning of earlier turns, which its upstream has just refused; undefined where that would
   * be the same request again, or where nothing may be left out.
   */
  withoutReasoning?(route: Route): AttemptRequest<T> | Refusal | undefined;
  readonly inspector: Inspector<T>;
}

/** One try at one upstream, for metrics, spans and absorbed costs. Times are on the clock's `monotonicMs`. */
export interface AttemptRecord {
  readonly upstream: string;
  /** The model's name at the upstream. */
  readonly model: string;
  readonly outcome: "ok" | "client_gone" | Cause;
  readonly status: number | undefined;
  /** For operators: our own words, or an inspector's; never shown to a client. */
  readonly reason: string;
  readonly startedAtMs: number;
  readonly headersMs: number | undefined;
  readonly firstByteMs: number | undefined;
  /** When it was decided. */
  readonly endedAtMs: number;
  /** Decoded body bytes until the attempt was decided. */
  readonly bytesReceived: number;
  /** Whether any byte of the request was written to a connection: what it may have cost is absorbed. */
  readonly sentToUpstream: boolean;
  /** The tier that it was asked for, as `AttemptRequest` says it. */
  readonly tier?: string | undefined;
  /** Whether the upstream itself said no, by status or by an error in the place of an answer: nobody bills that. */
  readonly refusedByUpstream: boolean;
  /** What the upstream counted for it, although it failed. */
  readonly usage?: Usage | undefined;
  /** Whether a client can ask for its failure: an answer larger than can be held here, a call that its model could not write. */
  readonly askedFor?: boolean | undefined;
  /** Whether it was refused for reasoning that its upstream did not make. */
  readonly reasoningRefused?: boolean | undefined;
}

/** Receives a body in order: data, then exactly one `end` or `error`, then nothing. */
export interface BodySink {
  data(chunk: Uint8Array): void;
  end(): void;
  error(fault: ReplyFault): void;
}

/** The rest of a streamed reply, after what was inspected. */
export interface UpstreamBody {
  /** Starts the flow; once only. */
  consume(sink: BodySink): void;
  /**
   * Stops the flow, and the upstream with it once BUFFERED_BYTES_MAX wait here. When the upstream is over these are given all the
   * same, unless the pause is firm.
   */
  pause(firmly?: boolean): void;
  resume(): void;
  /** Destroys the upstream's connection in this very tick; the sink is not called again. */
  abort(): void;
  /** The answer is complete: what the upstream still says is thrown away, and its connection kept where that is little. */
  letGo(): void;
  /** Decoded body bytes so far, the inspected ones included. */
  readonly bytesReceived: number;
}

export interface Answered<T> {
  readonly answered: true;
  readonly route: Route;
  readonly token: T;
  readonly status: number;
  /**
   * `content-type` only: nothing else of an upstream's head is believed or passed on (docs/failure-model.md rows 61 and
   * 62).
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined for whole replies: the inspector has had it. */
  readonly body: UpstreamBody | undefined;
  readonly attempts: readonly AttemptRecord[];
}

/** No upstream answered; there is a refusal to send unless the client is gone. */
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

/** Something that an operator should hear of: a credential refused, a model name that an upstream does not know. */
export interface DispatchWarning {
  readonly kind: "forbidden" | "model_not_found" | "tls" | "unexpected_status" | "unreachable" | "local";
  readonly upstream: string;
  readonly model: string;
  readonly status: number | undefined;
  readonly reason: string;
  /** Method and address. */
  readonly asked: string;
}
