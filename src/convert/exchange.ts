/**
 * The interface between the pipeline and the protocols. Each attempt has its own `Exchange`, because routes may differ
 * in protocol and capabilities. It encodes the request, then turns the upstream's reply into the client's. Everything
 * here is pure, bytes in and bytes out; time, ids and sealing come from `ConvertContext`.
 */
import type { Capabilities } from "../values/catalog.ts";
import type { Cause, ErrorAnswer, Refusal } from "../values/errors.ts";
import type { StoredNames } from "../values/members/stored.ts";
import type { PassedMembers } from "../values/members.ts";
import type { Protocol } from "../values/protocol.ts";
import type { ProducedCounts, Usage } from "../values/tokens/usage.ts";
import type { UpstreamErrorNames } from "../values/upstream-refusals.ts";
import type { JsonScan } from "../wire/json.ts";

/** A client's request that accept has validated. */
export interface ClientRequest {
  readonly protocol: Protocol;
  /** The body as received: valid UTF-8, one JSON object. */
  readonly body: Uint8Array;
  /** The parsed body; never changed in place. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Positions of the top-level members in `body`, for splices. */
  readonly scan: JsonScan;
  readonly model: string;
  readonly stream: boolean;
  /** Dotted paths of the members that no protocol lists, found by accept; undefined: not checked. */
  readonly surplus?: readonly string[] | undefined;
  /** Whether references to items of broken-off replies have been removed from it. */
  readonly lostReferences?: boolean | undefined;
  /** The wrapped ids in it; undefined: none. */
  readonly stored?: StoredNames | undefined;
}

/** What convert must know of the route of an attempt. */
export interface RouteFacts {
  /** The upstream's name in the configuration. */
  readonly upstream: string;
  readonly protocol: Protocol;
  readonly upstreamModel: string;
  readonly capabilities: Capabilities;
  readonly maxOutputTokens: number;
  readonly defaultOutputTokens: number;
  /** Members that are sent to the upstream although no protocol lists them; undefined: none. */
  readonly passedMembers?: PassedMembers | undefined;
  /** Names with which the upstream may answer for the model, in addition to the model's name and its dated versions. */
  readonly answersAs?: readonly string[] | undefined;
  /** Whether the upstream keeps responses that clients may refer to. */
  readonly stateful?: boolean | undefined;
}

/** The decisions of admission that change the body. */
export interface Permitted {
  /** The most output tokens that may be requested; undefined: the body's own limit stays. */
  readonly outputLimit: number | undefined;
  /** The most thinking tokens that may be requested; undefined: unlimited. */
  readonly thinkingMost?: number | undefined;
  /**
   * Whether the client has set no output limit for its stream (ARCHITECTURE.md promise 1). Such a stream may be ended
   * here with `truncate`.
   */
  readonly openEnded?: boolean | undefined;
  /**
   * Input tokens estimated from the request's size. If the upstream has not counted its input, a client of another
   * protocol is shown these and charged for them. Undefined if nothing is charged.
   */
  readonly inputEstimate?: number | undefined;
  /** Types of the offered hosted tools that have no price; they are left out. Undefined: none. */
  readonly unpricedTools?: readonly string[] | undefined;
  /** Whether the request is refused instead of dropping anything (`x-tollgate-strict: 1`). */
  readonly strict: boolean;
}

/** Time, randomness and secrets, so that the rest of this folder is pure. */
export interface ConvertContext {
  /** Seconds since the epoch, for `created`. */
  readonly nowS: number;
  /** `length` random base62 characters, for ids. */
  randomId(length: number): string;
  /** Wraps reasoning for the client to send back; the result starts with `gw1.` (docs/translation-rules.md rule 38). */
  seal(content: Uint8Array, context: string): string;
  /** Like `seal`, but gives the same envelope for the same content in the same context: for ids that are not secret. */
  sealAlike(content: Uint8Array, context: string): string;
  /**
   * 32 characters, always the same for the same text and account. Without the sealing key, they cannot be predicted or
   * recover the text.
   */
  digest(text: string): string;
  /** The content of an envelope that was sealed here for the same context; undefined for anything else. */
  open(envelope: string, context: string): Uint8Array | undefined;
}

export interface EncodedRequest {
  readonly body: Uint8Array;
  /** Client members that the translation left out, for `x-tollgate-translation`; empty if it was exact. */
  readonly dropped: readonly string[];
  /** Hints that were also left out; they do not change the answer. */
  readonly ignored?: readonly string[];
  /**
   * How many of `dropped` are members that no protocol lists. The client chose their names, so they are never metric
   * labels.
   */
  readonly unlisted: number;
  /** The name of the service tier that `body` asks for (values/members/tier.ts); undefined: standard. */
  readonly tier: string | undefined;
}

/** The token counts of an attempt that are known so far. */
export interface AttemptCounts {
  /** The upstream's own count; undefined while it has given no plausible one. */
  readonly usage: Usage | undefined;
  /** Whether `usage` is the upstream's final count, of all choices, and not a snapshot from the middle of a stream. */
  readonly final: boolean;
  /** What the reply contained, for the estimate. */
  readonly produced: ProducedCounts;
  /** The model that answered according to the upstream, if it is not the one that was asked for. */
  readonly answeredBy?: string | undefined;
}

/** Why an upstream's reply cannot become an answer. */
export interface UpstreamFault {
  readonly cause: Extract<Cause, `upstream_${string}`>;
  /** The upstream's own machine-readable code, if it gave one (`overloaded_error`, `rate_limit_exceeded`, ...). */
  readonly code: string | undefined;
  /** For operators; never shown to a client. */
  readonly reason: string;
  /** The upstream's message about a request that it rejects, unchanged; it must be cleaned before anybody reads it. */
  readonly words?: string | undefined;
  /** The code of such a rejection and the parameter that it blames, unchanged, too. */
  readonly names?: UpstreamErrorNames | undefined;
  /** The upstream's usage, if the reply is whole, or is a stream that failed before its first event. */
  readonly usage?: Usage | undefined;
  /** Whether a client can cause the fault by what it asks for. It is then charged like a client that disconnected. */
  readonly canBeAskedFor?: boolean | undefined;
  /** Whether the model itself failed and reported it; then its server counts as alive. */
  readonly ofModel?: boolean | undefined;
}

/** A whole reply, converted. */
export interface WholeReply {
  readonly body: Uint8Array;
  readonly counts: AttemptCounts;
}

/** A piece of the client's stream: always whole frames. */
export interface ClientFrames {
  readonly bytes: Uint8Array;
  /** Whether it contains output, known or unknown: this counts as delivered, and as the first token. */
  readonly semantic: boolean;
  /** Whether these frames end the stream; they wait until the charge is durable. */
  readonly terminal: boolean;
}

/** Turns an upstream's byte stream into the client's, however the bytes are split (promise 7). */
export interface StreamConverter {
  /**
   * Takes bytes of the upstream; returns the frames that they complete. Returns nothing after `fault` or the terminal
   * frame.
   */
  push(chunk: Uint8Array): readonly ClientFrames[];
  /** Called at the end of the upstream's body; returns the frames that are still to be sent. */
  end(): readonly ClientFrames[];
  /** Set when the upstream violated its protocol or reported an error in its stream. */
  readonly fault: UpstreamFault | undefined;
  /** True once the terminal frame has been returned. */
  readonly ended: boolean;
  /** True once any frame has been returned. */
  readonly opened: boolean;
  /**
   * The upstream's own id of the response that it keeps (`RouteFacts.stateful`). Undefined until a frame with it has been
   * returned, and for everything that is not kept.
   */
  readonly keptId: string | undefined;
  /**
   * True while the client's answer is complete and the upstream is read only for its usage, because a stop string was
   * found that the upstream did not get (rule 25). Continue to call `push`; call `end` after 10 s at most. Either
   * returns the terminal frame, even if the upstream fails.
   */
  readonly draining: boolean;
  counts(): AttemptCounts;
  /** The frames that end the client's stream as failed, in the form of its protocol (promise 8). */
  fail(answer: ErrorAnswer, requestId: string): Uint8Array;
  /**
   * Ends an open-ended stream here as truncated by an output limit and closes what is open. Returns the frames in the
   * form of the client's protocol. Nothing may be pushed after it.
   * @param usage the usage that is sent to the client.
   */
  truncate(usage: Usage): readonly ClientFrames[];
  /** A heartbeat frame (promise 8); undefined while the stream has not opened. */
  heartbeat(): Uint8Array | undefined;
}

/** One attempt's conversion. */
export interface Exchange {
  readonly request: EncodedRequest;
  /**
   * The `x-tollgate-translation` header: `exact` or `lossy; dropped=...`. Undefined if nothing was translated and
   * nothing was left out.
   */
  readonly translation: string | undefined;
  /** Converts a whole reply (2xx, any length). */
  whole(body: Uint8Array): WholeReply | UpstreamFault;
  /** Converts a streamed reply. */
  stream(): StreamConverter;
}

/** Makes the exchange of one attempt, or the refusal if this route cannot carry the request. */
export type OpenExchange = (
  request: ClientRequest,
  route: RouteFacts,
  permitted: Permitted,
  context: ConvertContext,
) => Exchange | Refusal;

/** Distinguishes a fault from a converted reply. */
export function isFault(value: WholeReply | UpstreamFault): value is UpstreamFault {
  return "reason" in value;
}
