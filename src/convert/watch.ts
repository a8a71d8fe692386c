/**
 * Watches a stream in its own protocol: what each frame means for the charge and for the end of the stream. Frames are
 * not decoded to the hub. Passthrough uses only a watcher; translation has a decoder of its own.
 */
import type { ErrorAnswer } from "../values/errors.ts";
import { type JsonObject, objectOf, textOf } from "../values/json-object.ts";
import type { Usage } from "../values/tokens/usage.ts";
import {
  blamesServer,
  codeIn,
  isOfOperator,
  REASONING_REFUSED,
  refusalMeaning,
  refusesReasoning,
} from "../values/upstream-refusals.ts";
import type { SseEvent } from "../wire/sse.ts";
import type { AnsweredModel } from "./answered-model.ts";
import type { DeltaRun, Varying } from "./delta-template.ts";
import type { AttemptCounts, UpstreamFault } from "./exchange.ts";
import { failureOf } from "./rules/finish-words.ts";

/** What one frame is. `bytes` is what the client gets: the frame itself, an edited copy, or nothing. */
export interface SeenEvent {
  readonly bytes: Uint8Array | undefined;
  readonly semantic: boolean;
  readonly terminal: boolean;
}

/**
 * Returns the usage that the client must be sent because the upstream's own is missing or incomplete: the one that it
 * is charged for. Undefined: the upstream has sent all of it.
 */
export type MissingUsage = (counts: AttemptCounts) => Usage | undefined;

/** Options of each protocol's watcher. */
export interface WatcherOptions {
  /** The client's model name, when the route renames it. */
  readonly rename: string | undefined;
  /** Sees each event; undefined: the answering model is not checked. */
  readonly answered?: AnsweredModel;
  /** The usage to send at the end if the upstream's is missing or incomplete. */
  readonly missingUsage?: MissingUsage;
}

export interface Watcher {
  /**
   * The members that may differ in further frames like the last one that `see` got. Undefined if each further frame has
   * to be parsed.
   */
  readonly varying: Varying | undefined;
  /**
   * Accounts for frames that follow it directly and differ in these members only, without parsing them. Has the effect
   * of calling `see` for each.
   */
  again(source: Buffer, run: DeltaRun): void;
  /** Looks at one frame. Sets `fault` if it violates the protocol or reports an upstream's error. */
  see(event: SseEvent): SeenEvent;
  /**
   * Ends a body that had no terminal frame. Returns the frame to add if the stop reason was seen
   * (docs/translation-rules.md rule 49); else sets `fault`.
   */
  finish(): Uint8Array | undefined;
  readonly fault: UpstreamFault | undefined;
  counts(): AttemptCounts;
  /** Ends the client's stream as failed. */
  fail(answer: ErrorAnswer, requestId: string): Uint8Array;
  /** Ends the client's stream as truncated by an output limit. */
  truncate(usage: Usage): Uint8Array;
  heartbeat(): Uint8Array | undefined;
}

export const NOTHING: SeenEvent = Object.freeze({ bytes: undefined, semantic: false, terminal: false });

/** A frame that is passed on unchanged. */
export function passed(event: SseEvent, semantic: boolean, terminal = false): SeenEvent {
  return { bytes: event.raw, semantic, terminal };
}

/** The fault of a reply that violates its protocol. */
export function invalid(reason: string): UpstreamFault {
  return { cause: "upstream_invalid", code: "server_error", reason };
}

/**
 * The fault of a reply that exceeds one of our limits. A client can cause one, for example by asking for probabilities
 * or for deeply nested arguments.
 */
export function beyondLimit(reason: string): UpstreamFault {
  return { ...invalid(reason), canBeAskedFor: true };
}

export const OVERSIZED: UpstreamFault = Object.freeze(beyondLimit("an event is over the size limit"));

export const TOO_MANY_NAMES: UpstreamFault = Object.freeze(beyondLimit("an event has too many names or values"));

/** A body that ended before its stop reason. */
export const TRUNCATED: UpstreamFault = Object.freeze({
  cause: "upstream_invalid",
  code: "upstream_stream_truncated",
  reason: "the stream ended without its terminal event",
});

/** An error as servers write it in a 200 body or in a stream. */
interface ReportedError {
  readonly type?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly param?: unknown;
  /** Only messages servers have these. */
  readonly details?: unknown;
}

/** The error in a reply or an event: an object, a string (LM Studio), or the whole reply (vLLM); undefined: none. */
export function errorIn(reply: JsonObject): ReportedError | undefined {
  const error = objectOf(reply.error);
  if (error) return error;
  if (typeof reply.error === "string" && reply.error.trim() !== "") return { code: reply.code, message: reply.error };
  return reply.object === "error" ? reply : undefined;
}

/** The most characters of a rejection's message that are kept; cleaning shortens it again. */
const WORDS_CHARS_MAX = 4_000;

/**
 * The fault for an error that an upstream reported in its stream or in a 200 body (rule 50).
 * @param type the error's `type`, `code` or both; an unknown name counts as a failure of the server.
 * @param message the error's message; decides where servers have no code for the case.
 * @param param the parameter that it blames.
 * @param details the details of a messages error, which hold its code.
 */
export function reported(
  type: unknown,
  errorCode: unknown,
  message?: unknown,
  param?: unknown,
  details?: unknown,
): UpstreamFault {
  const code = codeIn({ code: errorCode, details });
  const own = { code, param, details };
  const names = [type, code].filter((name): name is string => typeof name === "string");
  const status = statusIn(code) ?? statusIn(type);
  const has = (...wanted: string[]) => names.some((name) => wanted.includes(name));
  const codes = [type, code].filter((name) => typeof name === "string" || typeof name === "number");
  const reason = `the upstream reported ${codes.map(loggedWord).join("/") || "an error"}`;
  if (has("overloaded_error", "server_is_overloaded", "slow_down")) {
    return { cause: "upstream_unavailable", code: "server_is_overloaded", reason };
  }
  if (has("rate_limit_error", "rate_limit_exceeded")) {
    return { cause: "upstream_rate_limit", code: "rate_limit_exceeded", reason };
  }
  const words = typeof message === "string" && message.trim() !== "" ? message.slice(0, WORDS_CHARS_MAX) : undefined;
  if (refusesReasoning(names, message)) return { cause: "upstream_rejected", code: REASONING_REFUSED, reason, words };
  const meaning = refusalMeaning(names, message);
  if (isOfOperator(meaning) || has("authentication_error", "permission_error")) {
    return { cause: "upstream_forbidden", code: "server_error", reason };
  }
  const isRejected = has("invalid_request_error", "invalid_prompt", "context_length_exceeded", "request_too_large");
  if (isRejected || meaning !== undefined) {
    const named = names.find((name) => SHOWN_CODE.test(name) && !UNSPECIFIC.has(name));
    const known = meaning === "context_length_exceeded" ? meaning : (named ?? meaning);
    return { cause: "upstream_rejected", code: known ?? "invalid_prompt", reason, words, names: own };
  }
  return { ...byStatus(status, message), reason, ...(status === undefined ? {} : { words, names: own }) };
}

/** Types that say only that the request, or the server, is at fault. */
const UNSPECIFIC: ReadonlySet<string> = new Set(["invalid_request_error", "server_error"]);

/**
 * Codes that a client may read in the middle of a stream, where they are not compared with what must not be shown: no
 * key, id or address consists of such words.
 */
const SHOWN_CODE = /^(?=.{1,48}$)[a-z]+(?:_[a-z]+)*$/;

/** Error codes that may be logged. An upstream could put a quoted prompt in their place. */
const LOGGED_WORD = /^[A-Za-z0-9_.:-]{1,40}$/;

function loggedWord(word: unknown): string {
  const text = typeof word === "number" ? String(word) : textOf(word);
  return text !== undefined && LOGGED_WORD.test(text) ? text : "other";
}

/** A 4xx status in an error's code. The status of the reply itself is 200. */
function statusIn(code: unknown): number | undefined {
  const status = typeof code === "string" && /^4\d\d$/.test(code) ? Number(code) : code;
  return typeof status === "number" && status >= 400 && status < 500 ? status : undefined;
}

/**
 * What such a status means; the same as for the status of a response (dispatch/failure.ts). Some servers write 400 for
 * every failure in a stream (older versions of vLLM), so the message must also be that of a rejection.
 */
function byStatus(status: number | undefined, message: unknown): Pick<UpstreamFault, "cause" | "code"> {
  if (status === 429) return { cause: "upstream_rate_limit", code: "rate_limit_exceeded" };
  if (status === 401 || status === 402 || status === 403) return { cause: "upstream_forbidden", code: "server_error" };
  if (status === 404) return { cause: "upstream_unavailable", code: "model_not_found" };
  if (status === 408) return { cause: "upstream_timeout", code: "server_error" };
  const isRejected = (status === 400 || status === 413 || status === 422) && !blamesServer(message);
  if (isRejected) return { cause: "upstream_rejected", code: "invalid_prompt" };
  return { cause: "upstream_unavailable", code: "server_error" };
}

/**
 * The fault for a reply whose finish reason says that it broke off (rule 43). Unless the reason is about the server,
 * the server counts as healthy.
 */
export function brokenOff(word: unknown): UpstreamFault {
  const fault = reported(undefined, word);
  const whose = failureOf(word);
  if (fault.code !== "server_error" || whose === "server") return fault;
  return { ...fault, ofModel: true, ...(whose === "request" ? { canBeAskedFor: true } : {}) };
}
