/**
 * The interface between the pipeline and the protocols. One `Exchange` is made per attempt, since routes may differ in
 * protocol and capabilities; it encodes the request, then turns the upstream's reply into the client's. Everything here
 * is pure: bytes in, bytes out; time, ids and sealing come in through `ConvertContext`.
 */
import type { Capabilities } from "../values/catalog.ts";
import type { Cause, ErrorAnswer, Refusal } from "../values/errors.ts";
import type { StoredNames } from "../values/members/stored.ts";
import type { PassedMembers } from "../values/members.ts";
import type { Protocol } from "../values/protocol.ts";
import type { ProducedCounts, Usage } from "../values/tokens/usage.ts";
import type { JsonScan } from "../wire/json.ts";

/** A client's request once accept has vouched for its form. */
export interface ClientRequest {
  readonly protocol: Protocol;
  /** The body as it came: valid UTF-8, one JSON object. */
  readonly body: Uint8Array;
  /** The body parsed once; never changed in place. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Where the top-level members are in `body`, for splices. */
  readonly scan: JsonScan;
  readonly model: string;
  readonly stream: boolean;
  /** Dotted paths of the members that no protocol lists, as accept found them; undefined: nobody has looked. */
  readonly surplus?: readonly string[] | undefined;
  /** Whether references to items of replies that broke off have been left out of it. */
  readonly lostReferences?: boolean | undefined;
  /** Its wrapped ids; undefined: it has none. */
  readonly stored?: StoredNames | undefined;
}

/** What convert must know of the route that the attempt takes. */
export interface RouteFacts {
  /** The upstream's name in the configuration. */
  readonly upstream: string;
  readonly protocol: Protocol;
  readonly upstreamModel: string;
  readonly capabilities: Capabilities;
  readonly maxOutputTokens: number;
  readonly defaultOutputTokens: number;
  /** Members that the upstream gets though no protocol lists them; undefined: none. */
  readonly passedMembers?: PassedMembers | undefined;
  /** Names under which the upstream may answer for the model, beside its own and its dated versions. */
  readonly answersAs?: readonly string[] | undefined;
  /** Whether the upstream keeps responses that its clients may refer to. */
  readonly stateful?: boolean | undefined;
}

/** What admission decided that changes the body. */
export interface Permitted {
  /** The most output that may be asked for; undefined: the body's own limit is kept. */
  readonly outputLimit: number | undefined;
  /** The most tokens of thinking that may be asked for; undefined: any number. */
  readonly thinkingMost?: number | undefined;
  /**
   * Whether the client has named no limit for its stream (ARCHITECTURE.md promise 1): it may be ended here with
   * `truncate`.
   */
  readonly openEnded?: boolean | undefined;
  /**
   * Input tokens by the request's size: a client of another protocol is shown these, and charged for them, where the
   * upstream has not counted its input. Undefined where nothing is charged.
   */
  readonly inputEstimate?: number | undefined;
  /** Types of hosted tools that are offered and have no price: they are left out. Undefined: none. */
  readonly unpricedTools?: readonly string[] | undefined;
  /** Whether a drop is a refusal (`x-tollgate-strict: 1`). */
  readonly strict: boolean;
}

/** Time, chance and secrets for a pure folder. */
export interface ConvertContext {
  /** Seconds since the epoch, for `created`. */
  readonly nowS: number;
  /** `length` random base62 characters, for ids. */
  randomId(length: number): string;
  /**
   * Wraps reasoning content for the client to bring back; the result starts with `gw1.` (docs/translation-rules.md rule
   * 38).
   */
  seal(content: Uint8Array, context: string): string;
  /** The same as `seal`, and the same envelope for the same content in the same context: for ids that are no secrets. */
  sealAlike(content: Uint8Array, context: string): string;
  /**
   * 32 characters that the same text always gives, for the same account, and that nobody without the sealing key can
   * tell in advance or read the text from.
   */
  digest(text: string): string;
  /** The content of an envelope that was sealed here for the same context, or undefined for anything else. */
  open(envelope: string, context: string): Uint8Array | undefined;
}

export interface EncodedRequest {
  readonly body: Uint8Array;
  /** Client fields that the translation left out, for `x-tollgate-translation`; empty when exact. */
  readonly dropped: readonly string[];
  /** Advice that changes no answer and was left out, too. */
  readonly ignored?: readonly string[];
  /** How many of `dropped` are members that no protocol lists: their names are the client's, and no metric's label. */
  readonly unlisted: number;
  /** The name of the tier that `body` asks for (values/members/tier.ts); undefined for the standard one. */
  readonly tier: string | undefined;
}

/** What is known so far of the tokens of an attempt. */
export interface AttemptCounts {
  /** By the upstream's own count; undefined while it has said nothing believable. */
  readonly usage: Usage | undefined;
  /** Whether `usage` is the upstream's last word, of all choices, rather than a snapshot from the middle of a stream. */
  readonly final: boolean;
  /** What has gone by, for the estimate. */
  readonly produced: ProducedCounts;
  /** The model that the upstream says has answered, where that is another than was asked for. */
  readonly answeredBy?: string | undefined;
}

/** Why an upstream's reply cannot become an answer. */
export interface UpstreamFault {
  readonly cause: Extract<Cause, `upstream_${string}`>;
  /** The upstream's own machine-readable code, if it gave one (`overloaded_error`, `rate_limit_exceeded`, ...). */
  readonly code: string | undefined;
  /** For operators; never shown to a client. */
  readonly reason: string;
  /** What the upstream says of a request that it rejects, as it came: to be cleaned before anybody reads it. */
  readonly words?: string | undefined;
  /** What the upstream counted for it, where it is a whole reply, or a stream that failed before its first event. */
  readonly usage?: Usage | undefined;
  /** Whether a client can bring it about by what it asks for: the bill is then that of a client that left. */
  readonly canBeAskedFor?: boolean | undefined;
  /** Whether the model has failed and said so, and not its server: that is alive. */
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
  /** Whether any output is in it, known or unknown: what counts as delivered and as the first token. */
  readonly semantic: boolean;
  /** Whether the frames from here on end the stream: they wait for the charge to be durable. */
  readonly terminal: boolean;
}

/** Turns an upstream's byte stream into the client's, however it is cut (promise 7). */
export interface StreamConverter {
  /** Takes bytes of the upstream; gives the frames that they complete. After `fault` or the terminal frame: nothing. */
  push(chunk: Uint8Array): readonly ClientFrames[];
  /** The upstream's body has ended; gives the frames still owed. */
  end(): readonly ClientFrames[];
  /** Set when the upstream said or did what its protocol does not allow, or reported an error in its stream. */
  readonly fault: UpstreamFault | undefined;
  /** True once the terminal frame has been given. */
  readonly ended: boolean;
  /** True once any frame has been given. */
  readonly opened: boolean;
  /**
   * True while the client's answer is complete and the upstream is read on for its usage only, because a stop string
   * was found that the upstream did not get (rule 25). Push on; call `end` after 10 s at most: either gives the
   * terminal frame, even if the upstream fails.
   */
  readonly draining: boolean;
  counts(): AttemptCounts;
  /** The frames that end the client's stream as failed, in its protocol's own form (promise 8). */
  fail(answer: ErrorAnswer, requestId: string): Uint8Array;
  /**
   * The frames that end an open-ended stream here as cut by an output limit, in the client's protocol's own form: what
   * is open is closed. Nothing may be pushed after it.
   * @param usage the usage that the client is sent.
   */
  truncate(usage: Usage): readonly ClientFrames[];
  /** A frame for a silent stretch (promise 8), or undefined while the stream has not opened. */
  heartbeat(): Uint8Array | undefined;
}

/** One attempt's conversion. */
export interface Exchange {
  readonly request: EncodedRequest;
  /**
   * The `x-tollgate-translation` header: `exact` or `lossy; dropped=...`; undefined where nothing was translated and
   * nothing was left out.
   */
  readonly translation: string | undefined;
  /** Converts a whole reply (2xx, any length). */
  whole(body: Uint8Array): WholeReply | UpstreamFault;
  /** Converts a streamed reply. */
  stream(): StreamConverter;
}

/** Makes the exchange of one attempt, or says why this route cannot carry the request. */
export type OpenExchange = (
  request: ClientRequest,
  route: RouteFacts,
  permitted: Permitted,
  context: ConvertContext,
) => Exchange | Refusal;

/** Narrows a conversion's result to a fault. */
export function isFault(value: WholeReply | UpstreamFault): value is UpstreamFault {
  return "reason" in value;
}
