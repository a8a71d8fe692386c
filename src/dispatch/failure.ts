/**
 * The table of everything that can go wrong with an attempt: its cause for the caller, where the request may go next,
 * and its effect on the upstream's health (docs/failure-model.md rows C1 to C11).
 */
import { type Cause, type Refusal, refusal } from "../values/errors.ts";
import type { JsonObject } from "../values/json-object.ts";
import type { Usage } from "../values/tokens/usage.ts";
import {
  codeIn,
  codeOfMeaning,
  isOfOperator,
  REASONING_REFUSED,
  type RefusalCode,
  type RefusalMeaning,
  refusalCode,
  shownCode,
  type UpstreamErrorNames,
} from "../values/upstream-refusals.ts";
import type { DispatchWarning, ReplyFault, UpstreamCause } from "./ask.ts";
import type { HealthVerdict } from "./upstream/health.ts";
import { cleanedCode, cleanedDetails, cleanedParam, cleanedWords, type NamedUpstream } from "./upstream/words.ts";

/**
 * Where a request may be tried after a failure, if nothing has been accepted:
 *
 * - `nowhere`
 * - `without_reasoning`: the same route, with less of the request.
 * - `other_upstream`
 * - `other_route`: the same upstream under another model name is acceptable.
 * - `anywhere`: another upstream first, else the same one once more.
 */
type Next = "nowhere" | "without_reasoning" | "other_upstream" | "other_route" | "anywhere";

interface FailureRow {
  readonly cause: Cause;
  readonly next: Next;
  /**
   * `none`: caused by the caller or by this machine; no evidence about the upstream. `alive`: it answered that the
   * caller is at fault. `not_found`: counted, but no evidence either, because it may be about one model's name.
   */
  readonly health: HealthVerdict["kind"];
  readonly warning?: DispatchWarning["kind"];
}

const row = (cause: Cause, next: Next, health: FailureRow["health"], warning?: DispatchWarning["kind"]): FailureRow =>
  warning === undefined ? { cause, next, health } : { cause, next, health, warning };

const FAILURES = {
  connection_failed: row("upstream_unavailable", "anywhere", "local", "unreachable"),
  connect_timeout: row("upstream_timeout", "anywhere", "local", "unreachable"),
  /** Either side refuses the other's certificate, or there is no TLS, or another version of it. */
  tls_failed: row("upstream_unavailable", "other_upstream", "local", "tls"),
  /** The connection broke in the TLS handshake. */
  handshake_cut: row("upstream_unavailable", "anywhere", "local", "tls"),
  /** The connection broke after the request was written. */
  connection_cut: row("upstream_unavailable", "anywhere", "local"),
  /** Not HTTP, or HTTP that contradicts itself. */
  bad_framing: row("upstream_invalid", "other_upstream", "remote"),
  first_byte_timeout: row("upstream_timeout", "other_upstream", "local"),
  whole_timeout: row("upstream_timeout", "other_upstream", "local"),
  idle_timeout: row("upstream_timeout", "other_upstream", "local"),
  /** The lifetime of the request is over: no further attempt can follow. */
  deadline: row("upstream_timeout", "nowhere", "none"),
  bad_headers: row("upstream_invalid", "other_upstream", "remote"),
  bad_content_type: row("upstream_invalid", "other_upstream", "remote"),
  bad_encoding: row("upstream_invalid", "other_upstream", "remote"),
  /** Another attempt would cost again and give the same result. */
  too_large: row("upstream_invalid", "nowhere", "none"),
  /** 400, 413, 422: the caller's own fault, which any upstream would find. */
  rejected: row("upstream_rejected", "nowhere", "alive"),
  /**
   * The same because of reasoning that it did not produce: it is asked once more without it, if that changes the
   * request.
   */
  reasoning_refused: row("upstream_rejected", "without_reasoning", "alive"),
  forbidden: row("upstream_forbidden", "other_upstream", "forbidden", "forbidden"),
  /** 403: servers use it both for a credential and for the contents of one request. */
  denied: row("upstream_forbidden", "other_upstream", "denied", "forbidden"),
  model_not_found: row("upstream_unavailable", "other_route", "not_found", "model_not_found"),
  /** 405: there is something else, or nothing, at our path. */
  method_refused: row("upstream_unavailable", "other_upstream", "not_found", "unexpected_status"),
  request_timeout: row("upstream_timeout", "other_upstream", "remote"),
  rate_limited: row("upstream_rate_limit", "other_upstream", "rate_limited"),
  /** 429 for a request that alone exceeds the account's limit: it does not apply to smaller requests. */
  beyond_rate: row("upstream_rate_limit", "other_upstream", "alive"),
  /** 5xx, 529, and what counts as such: 3xx, 409, 425, and successes without an answer in them. */
  server_error: row("upstream_unavailable", "anywhere", "remote"),
  /** A 4xx about how the gateway asks (406, 411, 415, ...), not about the caller's request. */
  unexpected_status: row("upstream_unavailable", "other_upstream", "none", "unexpected_status"),
  /** The reply's first event, or the whole reply, is an error. One row for each cause that an inspector may give. */
  fault_unavailable: row("upstream_unavailable", "anywhere", "remote"),
  fault_timeout: row("upstream_timeout", "other_upstream", "remote"),
  fault_invalid: row("upstream_invalid", "other_upstream", "remote"),
  /** The model has failed and said so in a reply: its server is healthy. */
  model_failed: row("upstream_unavailable", "anywhere", "alive"),
  /** The same, caused by the request: another attempt would cost again and give the same result. */
  model_failed_at_it: row("upstream_invalid", "nowhere", "alive"),
  /** No descriptors, ports or memory on this machine: another upstream would need them, too. */
  out_of_resources: row("overloaded", "nowhere", "none", "local"),
  /** The request could not even be written: undici rejects the configured headers or address. */
  unsendable: row("upstream_unavailable", "other_upstream", "none", "local"),
  /** The gateway ends before the upstream has answered. */
  stopped: row("draining", "nowhere", "none"),
} as const satisfies Record<string, FailureRow>;

export type FailureKind = keyof typeof FAILURES;

/** One failed attempt; all members are always present. */
export interface Failure {
  readonly kind: FailureKind;
  readonly reason: string;
  readonly status: number | undefined;
  /** Seconds, possibly with milliseconds. */
  readonly retryAfterS: number | undefined;
  /** The upstream's cleaned message (`rejected` only). */
  readonly upstreamMessage: string | undefined;
  /** Why it refused the request, as a code that clients know or its own one, cleaned (`rejected` only). */
  readonly upstreamCode: string | undefined;
  /** The parameter that it blames, cleaned (`rejected` only, from an upstream of the client's protocol). */
  readonly upstreamParam: string | undefined;
  /** The details of its error, cleaned (`rejected` only, from an upstream of the client's protocol). */
  readonly upstreamDetails: JsonObject | undefined;
  /** What the upstream counted in spite of the failure. */
  readonly usage?: Usage | undefined;
}

export function failure(
  kind: FailureKind,
  reason: string,
  more: Partial<Omit<Failure, "kind" | "reason">> = {},
): Failure {
  return {
    kind,
    reason,
    status: more.status,
    retryAfterS: more.retryAfterS,
    upstreamMessage: more.upstreamMessage,
    upstreamCode: more.upstreamCode,
    upstreamParam: more.upstreamParam,
    upstreamDetails: more.upstreamDetails,
    usage: more.usage,
  };
}

/** The row of a failure. */
export function rowOf(failed: Failure): FailureRow {
  return FAILURES[failed.kind];
}

const CODES: ReadonlyMap<string, FailureKind> = new Map<string, FailureKind>([
  ...codes("connection_failed", "ECONNREFUSED ENOTFOUND EAI_AGAIN EAI_FAIL EHOSTUNREACH ENETUNREACH EHOSTDOWN ENOENT"),
  ...codes("connect_timeout", "UND_ERR_CONNECT_TIMEOUT ETIMEDOUT"),
  ...codes("connection_cut", "ECONNRESET EPIPE ECONNABORTED UND_ERR_SOCKET UND_ERR_CLOSED UND_ERR_DESTROYED"),
  ...codes("bad_framing", "UND_ERR_HEADERS_OVERFLOW UND_ERR_RES_CONTENT_LENGTH_MISMATCH UND_ERR_NOT_SUPPORTED"),
  ...codes("too_large", "UND_ERR_RES_EXCEEDED_MAX_SIZE"),
  ...codes("out_of_resources", "EMFILE ENFILE EADDRNOTAVAIL ENOBUFS ENOMEM"),
  ...codes("unsendable", "UND_ERR_INVALID_ARG UND_ERR_REQ_CONTENT_LENGTH_MISMATCH ERR_INVALID_ARG_TYPE"),
]);

/** Codes of a connection that the other side has ended. */
const CUT_BY_PEER: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED"]);

/** OpenSSL's codes for a chain or a certificate that it does not accept. */
const CERTIFICATE = /^(?:CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|HOSTNAME_|ERR_TLS_|ERR_SSL_|EPROTO$)/;

/**
 * HTTP that undici refuses to read, by its message, because all of it has the same code. This includes a 100, which we
 * never ask for (`docs/decisions/an-unasked-100-continue-is-no-answer.md`).
 */
const UNDICI_REFUSALS: ReadonlyMap<unknown, string> = new Map([
  ["bad response", "100 Continue that nobody asked for"],
  ["bad upgrade", "a change of protocol that nobody asked for"],
]);

function codes(kind: FailureKind, names: string): [string, FailureKind][] {
  return names.split(" ").map((name) => [name, kind]);
}

/**
 * Classifies an error of undici, node:net or node:tls. The error's message is left out: it can contain addresses, and a
 * proxy's message can contain credentials.
 * @param inHandshake whether the connection is for TLS and could not be used yet.
 */
export function failureOfError(error: unknown, inHandshake = false): Failure {
  const { name, code, message } = error as { name?: unknown; code?: unknown; message?: unknown };
  // undici's parser errors have no code if llhttp gives only a number.
  if (name === "HTTPParserError") return failure("bad_framing", name);
  const odd = code === "UND_ERR_SOCKET" ? UNDICI_REFUSALS.get(message) : undefined;
  if (odd !== undefined) return failure("bad_framing", odd);
  if (typeof code !== "string") return failure("connection_cut", "the connection failed");
  if (inHandshake && CUT_BY_PEER.has(code)) return failure("handshake_cut", `${code} in the TLS handshake`);
  return failure(CODES.get(code) ?? (CERTIFICATE.test(code) ? "tls_failed" : "connection_cut"), code);
}

/** What a status other than an answer's means, before the body has been read. */
function kindOfStatus(status: number): FailureKind {
  if (status === 400 || status === 413 || status === 422) return "rejected";
  if (status === 401 || status === 402) return "forbidden";
  if (status === 403) return "denied";
  if (status === 404) return "model_not_found";
  if (status === 405) return "method_refused";
  if (status === 408) return "request_timeout";
  if (status === 429) return "rate_limited";
  if (status === 409 || status === 425 || status < 400 || status >= 500) return "server_error";
  return "unexpected_status";
}

/**
 * The same, by what the refusal says. An exhausted quota and a refused key concern the operator. A problem
 * with the contents of the request concerns the caller, even if the server answers 403.
 */
export function kindOfRefusal(status: number, meaning: RefusalMeaning | undefined): FailureKind {
  if (isOfOperator(meaning) && status >= 400 && status < 500) return "forbidden";
  if (meaning === "beyond_rate" && status === 429) return "beyond_rate";
  return status === 403 && codeOfMeaning(meaning) !== undefined ? "rejected" : kindOfStatus(status);
}

const FAULT_KINDS: Readonly<Record<UpstreamCause, FailureKind>> = {
  upstream_rejected: "rejected",
  upstream_rate_limit: "rate_limited",
  upstream_forbidden: "forbidden",
  upstream_unavailable: "fault_unavailable",
  upstream_timeout: "fault_timeout",
  upstream_invalid: "fault_invalid",
};

/** The upstream of an attempt, whose secrets its errors may contain. */
export interface AnsweringUpstream extends NamedUpstream {
  /** Whether it speaks the client's protocol, so that it names the members of the body as the client does. */
  readonly isOfClientsProtocol: boolean;
}

/** Turns an inspector's fault into a failure. @param by the upstream that answered. */
export function failureOfFault(fault: ReplyFault, by: AnsweringUpstream): Failure {
  const isRejected = fault.cause === "upstream_rejected";
  const names = isRejected ? namesOf(fault.names ?? {}, refusalCode(fault.code), by) : undefined;
  const upstreamMessage = fault.words === undefined ? undefined : cleanedWords(fault.words, by.settings);
  return failure(kindOfFault(fault), fault.reason, { usage: fault.usage, upstreamMessage, ...names });
}

/** The code, the parameter and the details of a rejection, for the client. @param known the code of its meaning. */
export function namesOf(
  own: UpstreamErrorNames,
  known: RefusalCode | undefined,
  by: AnsweringUpstream,
): Pick<Failure, "upstreamCode" | "upstreamParam" | "upstreamDetails"> {
  return {
    upstreamCode: shownCode(known, cleanedCode({ code: codeIn(own) }, by)),
    upstreamParam: by.isOfClientsProtocol ? cleanedParam(own, by) : undefined,
    upstreamDetails: by.isOfClientsProtocol ? cleanedDetails(own, by) : undefined,
  };
}

function kindOfFault({ cause, code, canBeAskedFor, ofModel }: ReplyFault): FailureKind {
  if (ofModel) return canBeAskedFor ? "model_failed_at_it" : "model_failed";
  if (canBeAskedFor) return "too_large";
  if (cause === "upstream_rejected" && code === REASONING_REFUSED) return "reasoning_refused";
  return code === "model_not_found" ? "model_not_found" : FAULT_KINDS[cause];
}

/** The fault that ends a stream that was already handed over. */
export function faultOf(failed: Failure): ReplyFault {
  const cause: Cause = rowOf(failed).cause;
  return {
    cause: cause === "overloaded" ? "upstream_unavailable" : (cause as UpstreamCause),
    code: undefined,
    reason: failed.reason,
  };
}

/** Maximum `retry-after` that is passed on from an overloaded server, so that SDKs still retry by themselves. */
const OVERLOAD_RETRY_AFTER_S_MAX = 60;

/** The upstream's own `retry-after`, if any: of a 429 unchanged, of an overload capped. */
function retryAfterOf({ kind, retryAfterS }: Failure): number | undefined {
  if (kind === "rate_limited" || kind === "beyond_rate") return retryAfterS;
  if (kind !== "server_error" || retryAfterS === undefined) return undefined;
  return Math.min(retryAfterS, OVERLOAD_RETRY_AFTER_S_MAX);
}

/** Whether the upstream found the caller's request at fault; then its message goes to the caller. */
export function isRejection(kind: FailureKind): boolean {
  return kind === "rejected" || kind === "reasoning_refused";
}

/**
 * Whether a client can have caused the failure by its request: its cost is then charged as if the client had
 * disconnected. A server that refuses a request without having run it counts nothing.
 */
export function canBeAskedFor({ kind, usage }: Failure): boolean {
  return kind === "too_large" || kind === "model_failed_at_it" || (kind === "rejected" && usage !== undefined);
}

/** The answer to the caller if this failure is final. */
export function refusalOf(failed: Failure): Refusal {
  return refusal(
    rowOf(failed).cause,
    { param: failed.upstreamParam },
    {
      status: isRejection(failed.kind) ? (failed.status === 413 ? 413 : 400) : undefined,
      retryAfterS: retryAfterOf(failed),
      upstreamMessage: failed.upstreamMessage,
      upstreamCode: failed.upstreamCode,
      details: failed.upstreamDetails,
    },
  );
}
