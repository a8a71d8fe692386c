/**
 * Every error that Tollgate answers with is a row here, in order of precedence (docs/errors.md). The rows hold status,
 * identifier and texts; each protocol renders them in its own shape in `convert/<protocol>/error.ts`. A row is an
 * answer to the caller. A broken invariant of Tollgate is an exception; the two never share a path.
 */

import type { JsonObject } from "./json-object.ts";
import { quoted } from "./words/shown.ts";

type Identifier =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "model_not_found"
  | "not_found_error"
  | "conflict_error"
  | "rate_limit_error"
  | "api_error"
  | "overloaded_error";

/**
 * The facts that a row's message can include. All pass `quoted`, so no control character reaches an answer; the remedy
 * is our own text.
 */
interface ErrorFacts {
  /** The model as the client typed it. */
  readonly model?: string | undefined;
  /** The key's group. */
  readonly group?: string | undefined;
  /** The body member, header or path at fault. */
  readonly param?: string | undefined;
  /** One precise sentence about this request; ends with a full stop. */
  readonly detail?: string | undefined;
  /** What helps in this case; replaces the row's remedy. */
  readonly remedy?: string | undefined;
}

export interface ErrorRow {
  readonly status: number;
  readonly identifier: Identifier;
  /** What the specification's clients match on. */
  readonly summary: string;
  /** What the caller can do. */
  readonly remedy: string;
  /** Sent as `x-should-retry` if it must overrule what the SDKs conclude from the status. */
  readonly shouldRetry?: boolean;
  /** Seconds for `retry-after` when the refusal itself names none. */
  readonly retryAfterS?: number;
  /** Whether the connection is closed after the answer. */
  readonly close?: boolean;
  /** Whether the message begins with the detail, because the summary alone is misleading. */
  readonly detailFirst?: boolean;
}

const SPEC_403 = "Access to the upstream is forbidden, contact the administrator";
const SPEC_404 = "The model is not supported by any configured account in this group";

function row(status: number, identifier: Identifier, summary: string, remedy: string, extra: Partial<ErrorRow> = {}) {
  return { status, identifier, summary, remedy, ...extra } as const satisfies ErrorRow;
}

const FIX_BODY = "Correct the request body and send it again.";
const BACK_OFF = "Wait for the time in retry-after, then send the request again.";
const RETRY_LATER = "Retry later; if this lasts longer than ten minutes, contact the administrator.";

/** No body is kept, so a request that was charged under a key cannot be answered again. */
const keyCharged = (summary: string) =>
  row(409, "conflict_error", summary, "Use a new idempotency key.", { shouldRetry: false });

/** All rows by cause; the order of the keys is the order of precedence. */
export const ERROR_ROWS = {
  framing: row(400, "invalid_request_error", "The HTTP request is malformed", "Send a well-formed HTTP/1.1 request.", {
    close: true,
  }),
  request_timeout: row(
    408,
    "invalid_request_error",
    "The request took too long to arrive",
    "Send the request again on a new connection.",
    { close: true, shouldRetry: true },
  ),
  uri_too_long: row(
    414,
    "invalid_request_error",
    "The request target is too long",
    "Use one of the documented paths.",
    { close: true },
  ),
  headers_too_large: row(
    431,
    "invalid_request_error",
    "The request headers are too large",
    "Send fewer or shorter headers.",
    { close: true },
  ),
  expectation_failed: row(
    417,
    "invalid_request_error",
    "Only Expect: 100-continue is supported",
    "Remove the Expect header.",
    { close: true },
  ),
  doubled_prefix: row(
    404,
    "not_found_error",
    "There is nothing at this address: the path repeats its /v1 prefix",
    "Correct the base address of the client; the right address is in x-tollgate-hint.",
  ),
  unknown_path: row(
    404,
    "not_found_error",
    "There is nothing at this address",
    "Use POST /v1/chat/completions, /v1/messages or /v1/responses, spelled exactly like that.",
  ),
  method_not_allowed: row(
    405,
    "invalid_request_error",
    "This method is not allowed here",
    "Use a method from the allow header.",
  ),
  upgrade_required: row(
    426,
    "invalid_request_error",
    "WebSocket connections are not offered here",
    "Send the request as POST over HTTP.",
  ),
  key_in_address: row(
    400,
    "invalid_request_error",
    "The address contains an API key, which would be passed on to the site behind this gateway",
    "Send the key as Authorization: Bearer <key> or as x-api-key: <key>, to one of the API's own paths.",
  ),
  missing_key: row(
    401,
    "authentication_error",
    "No API key was given",
    "Send the key as Authorization: Bearer <key> or as x-api-key: <key>.",
    { shouldRetry: false },
  ),
  malformed_key: row(
    401,
    "authentication_error",
    "The API key is not written correctly",
    "Copy the whole key: it begins with sk- and has no spaces or line breaks.",
    { shouldRetry: false },
  ),
  conflicting_keys: row(
    401,
    "authentication_error",
    "Two different API keys were given",
    "Send one key, in one header.",
    { shouldRetry: false },
  ),
  bad_keys: row(
    429,
    "rate_limit_error",
    "Too many failed authentications from this address",
    "Wait a minute and check the key that the client sends.",
    { retryAfterS: 60 },
  ),
  unknown_key: row(401, "authentication_error", "The API key is unknown", "Check the key, or create a new one.", {
    shouldRetry: false,
  }),
  revoked_key: row(401, "authentication_error", "The API key has been revoked", "Create a new key.", {
    shouldRetry: false,
  }),
  suspended: row(
    401,
    "authentication_error",
    "The API key, or its account, is suspended",
    "Ask whoever manages the key to resume it.",
    {
      shouldRetry: false,
    },
  ),
  expired_key: row(
    401,
    "authentication_error",
    "The API key has expired",
    "Create a new key, or have the expiry of this one extended.",
    { shouldRetry: false },
  ),
  address_not_allowed: row(
    403,
    "permission_error",
    "The API key may not be used from this address",
    "Use the key from an allowed address, or have this address added to its limits.",
    { shouldRetry: false },
  ),
  body_too_large: row(413, "invalid_request_error", "The request body is too large", "Send a smaller body.", {
    close: true,
  }),
  unsupported_media_type: row(
    415,
    "invalid_request_error",
    "The body must be plain JSON in UTF-8",
    "Send Content-Type: application/json and no Content-Encoding.",
  ),
  not_json: row(400, "invalid_request_error", "The request body is not a valid JSON object", FIX_BODY),
  duplicate_field: row(400, "invalid_request_error", "A field appears twice in the request body", FIX_BODY),
  wrong_protocol: row(
    400,
    "invalid_request_error",
    "The body is written for a different protocol than that of this path",
    "Send the body to the path of its own protocol.",
  ),
  missing_field: row(400, "invalid_request_error", "A required field is missing", FIX_BODY),
  wrong_type: row(400, "invalid_request_error", "A field has the wrong type or value", FIX_BODY),
  idempotency_key: row(
    400,
    "invalid_request_error",
    "The Idempotency-Key header cannot be used",
    "Send 1 to 255 printable ASCII characters, and a new key with each new request.",
  ),
  unknown_model: row(
    404,
    "model_not_found",
    SPEC_404,
    "Copy the model's name exactly from the catalog (GET /v1/models).",
  ),
  idempotency_in_progress: row(
    409,
    "conflict_error",
    "A request with this idempotency key is still running",
    "Wait for the first request to end.",
    { shouldRetry: true, retryAfterS: 2 },
  ),
  idempotency_streamed: keyCharged("A stream with this idempotency key has already been delivered"),
  idempotency_finished: keyCharged("A request with this idempotency key has already been answered"),
  not_in_plan: row(
    404,
    "model_not_found",
    SPEC_404,
    "Use a model that is in the plan, or change to a plan that has it.",
  ),
  group_mismatch: row(403, "permission_error", SPEC_403, "Change the key's group to one that serves this model."),
  model_not_allowed: row(
    403,
    "permission_error",
    SPEC_403,
    "Use a model that the key's limits allow (GET /v1/models), or have this model added to them.",
  ),
  no_entitlement: row(
    403,
    "permission_error",
    SPEC_403,
    "Redeem a time card, or change the key to a pay-per-use group.",
    { detailFirst: true },
  ),
  quota_used: row(
    403,
    "permission_error",
    SPEC_403,
    "Redeem another time card, or change the key to a pay-per-use group.",
    { detailFirst: true },
  ),
  insufficient_balance: row(
    403,
    "permission_error",
    SPEC_403,
    "Top up the balance, or change the key to a time-card group.",
    { detailFirst: true },
  ),
  key_budget: row(
    403,
    "permission_error",
    SPEC_403,
    "Wait until the key's budget resets, if it does (x-tollgate-budget-reset), or have it raised.",
    { detailFirst: true },
  ),
  account_budget: row(
    403,
    "permission_error",
    SPEC_403,
    "Wait until the account's budget resets, if it does (x-tollgate-budget-reset), or have it raised.",
    { detailFirst: true },
  ),
  requests: row(429, "rate_limit_error", "The limit of requests per minute is reached", BACK_OFF),
  tokens: row(429, "rate_limit_error", "The limit of tokens per minute is reached", BACK_OFF),
  concurrency: row(429, "rate_limit_error", "Too many requests are running at once", BACK_OFF, { retryAfterS: 1 }),
  unsupported_parameter: row(
    400,
    "invalid_request_error",
    "A parameter is not supported for this model",
    "Remove the parameter.",
  ),
  untranslatable: row(
    400,
    "invalid_request_error",
    "The request cannot be carried to this model without changing its meaning",
    "Remove the named part, or use a model that supports it.",
  ),
  upstream_rejected: row(400, "invalid_request_error", "The model's server refused the request", FIX_BODY),
  upstream_rate_limit: row(429, "rate_limit_error", "The model's server is at its limit", BACK_OFF, { retryAfterS: 5 }),
  upstream_forbidden: row(403, "permission_error", SPEC_403, RETRY_LATER, { shouldRetry: true, retryAfterS: 5 }),
  upstream_unavailable: row(403, "permission_error", SPEC_403, RETRY_LATER, { shouldRetry: true, retryAfterS: 2 }),
  upstream_timeout: row(403, "permission_error", SPEC_403, RETRY_LATER, { shouldRetry: true, retryAfterS: 2 }),
  upstream_invalid: row(403, "permission_error", SPEC_403, RETRY_LATER, { shouldRetry: true, retryAfterS: 2 }),
  draining: row(503, "overloaded_error", "This gateway is shutting down", "Send the request again.", {
    shouldRetry: true,
    retryAfterS: 1,
    close: true,
  }),
  overloaded: row(503, "overloaded_error", "This gateway is under more load than it can carry", BACK_OFF, {
    shouldRetry: true,
    retryAfterS: 2,
  }),
  store_unavailable: row(503, "overloaded_error", "The gateway's accounts cannot be read right now", BACK_OFF, {
    shouldRetry: true,
    retryAfterS: 2,
  }),
  store_older: row(
    503,
    "overloaded_error",
    "The gateway's accounts went back to an older state and wait for the operator",
    BACK_OFF,
    { shouldRetry: true, retryAfterS: 30 },
  ),
  journal_full: row(503, "overloaded_error", "The gateway cannot record charges right now", BACK_OFF, {
    shouldRetry: true,
    retryAfterS: 5,
  }),
  internal: row(
    500,
    "api_error",
    "The gateway failed on this request",
    "Retry once; if it fails again, report the request id.",
    { shouldRetry: true },
  ),
} as const satisfies Record<string, ErrorRow>;

export type Cause = keyof typeof ERROR_ROWS;

/** Which side caused a refusal: the `x-tollgate-origin` header. */
type Origin = "gateway" | "upstream";

/** A refusal is a value: it is returned, carried and rendered, never thrown across a stage. */
export interface Refusal {
  readonly refused: true;
  readonly cause: Cause;
  readonly facts: ErrorFacts;
  /** Overrides the row's status: an upstream's 413, or `upstream_unavailable_status`. */
  readonly status: number | undefined;
  readonly retryAfterS: number | undefined;
  /** Overrides the row's, if this request stays refused in a case whose others do not. */
  readonly shouldRetry: boolean | undefined;
  /** Further headers of the answer: `allow`, `x-tollgate-hint`. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** An upstream's own message, cleaned, if clients match on it (`upstream_rejected` only). */
  readonly upstreamMessage: string | undefined;
  /** Why the upstream refused: a code that clients know, or its own one, cleaned (`upstream_rejected` only). */
  readonly upstreamCode: string | undefined;
  /** What programs read of an error in the form of Anthropic: the upstream's details, cleaned, or our own. */
  readonly details: JsonObject | undefined;
}

/** Makes a refusal; every member is always present. */
export function refusal(
  cause: Cause,
  facts: ErrorFacts = {},
  more: Partial<Omit<Refusal, "refused" | "cause" | "facts">> = {},
): Refusal {
  return {
    refused: true,
    cause,
    facts,
    status: more.status,
    retryAfterS: more.retryAfterS,
    shouldRetry: more.shouldRetry,
    headers: more.headers,
    upstreamMessage: more.upstreamMessage,
    upstreamCode: more.upstreamCode,
    details: more.details,
  };
}

/** Narrows a stage's result to a refusal. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && (value as { refused?: unknown }).refused === true;
}

/** A refusal with its row resolved: all that a renderer needs. */
export interface ErrorAnswer {
  readonly status: number;
  readonly identifier: Identifier;
  readonly cause: Cause;
  readonly message: string;
  readonly remedy: string;
  readonly param: string | null;
  readonly upstreamCode: string | undefined;
  readonly details: JsonObject | undefined;
  readonly origin: Origin;
  readonly shouldRetry: boolean | undefined;
  readonly retryAfterS: number | undefined;
  readonly close: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** Longest wait that the SDKs obey; above it the answer tells a client not to retry by itself. */
const RETRY_AFTER_OBEYED_S = 60;

const UPSTREAM_CAUSES: ReadonlySet<Cause> = new Set<Cause>([
  "upstream_rejected",
  "upstream_rate_limit",
  "upstream_forbidden",
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_invalid",
]);

/** The causes that `upstream_unavailable_status` turns into 503. */
const UNAVAILABLE_CAUSES: ReadonlySet<Cause> = new Set<Cause>([
  "upstream_unavailable",
  "upstream_timeout",
  "upstream_invalid",
]);

/**
 * Resolves a refusal to status, message and headers.
 * @param upstreamUnavailableStatus 403, or 503 to answer as an overload when no upstream could answer.
 */
export function answerOf(refused: Refusal, upstreamUnavailableStatus: 403 | 503 = 403): ErrorAnswer {
  const found: ErrorRow = ERROR_ROWS[refused.cause];
  const as503 = upstreamUnavailableStatus === 503 && UNAVAILABLE_CAUSES.has(refused.cause);
  const status = refused.status ?? (as503 ? 503 : found.status);
  const retryAfterS = refused.retryAfterS ?? found.retryAfterS ?? (status === 429 ? 1 : undefined);
  const tooLong = status === 429 && retryAfterS !== undefined && retryAfterS > RETRY_AFTER_OBEYED_S;
  return {
    status,
    identifier: as503 ? "overloaded_error" : found.identifier,
    cause: refused.cause,
    message:
      refused.upstreamMessage ??
      sentence(as503 ? "No upstream of the model could answer" : found.summary, refused.facts, found.detailFirst),
    remedy: refused.facts.remedy ?? found.remedy,
    param: refused.facts.param === undefined ? null : quoted(refused.facts.param),
    upstreamCode: refused.upstreamCode,
    details: refused.details,
    origin: UPSTREAM_CAUSES.has(refused.cause) ? "upstream" : "gateway",
    shouldRetry: tooLong ? false : (refused.shouldRetry ?? found.shouldRetry),
    retryAfterS: retryAfterS === undefined ? undefined : Math.max(1, Math.ceil(retryAfterS)),
    close: found.close === true,
    headers: refused.headers ?? {},
  };
}

/** Summary and detail, the detail first if `detailFirst`, then the names that a support request should contain. */
function sentence(summary: string, facts: ErrorFacts, detailFirst = false): string {
  const detail = facts.detail === undefined ? "" : quoted(facts.detail, 400);
  const words = (detailFirst ? [detail, `${summary}.`] : [`${summary}.`, detail]).filter((one) => one !== "").join(" ");
  const model = facts.model === undefined ? "" : ` Model: "${quoted(facts.model)}".`;
  const group = facts.group === undefined ? "" : ` Group: "${quoted(facts.group)}".`;
  return `${words}${model}${group}`;
}
