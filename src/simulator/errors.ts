/** Error bodies of the simulated vendors: what a gateway receives from upstream, not what it answers. */

import type { Protocol } from "../values/protocol.ts";

export interface ErrorWords {
  readonly type?: string;
  readonly code?: string | null;
  readonly param?: string | null;
  readonly message: string;
}

interface VendorErrorType {
  readonly openai: string;
  readonly code: string | null;
  readonly messages: string;
}

const SERVER: VendorErrorType = { openai: "server_error", code: null, messages: "api_error" };
const INVALID: VendorErrorType = { openai: "invalid_request_error", code: null, messages: "invalid_request_error" };

const ROWS: Readonly<Record<number, VendorErrorType>> = {
  400: INVALID,
  401: { openai: "invalid_request_error", code: "invalid_api_key", messages: "authentication_error" },
  402: { openai: "insufficient_quota", code: "insufficient_quota", messages: "billing_error" },
  403: { openai: "permission_error", code: null, messages: "permission_error" },
  404: { openai: "invalid_request_error", code: "model_not_found", messages: "not_found_error" },
  408: { openai: "timeout", code: null, messages: "timeout_error" },
  409: { openai: "conflict", code: null, messages: "conflict_error" },
  413: { openai: "invalid_request_error", code: "request_too_large", messages: "request_too_large" },
  429: { openai: "rate_limit_error", code: "rate_limit_exceeded", messages: "rate_limit_error" },
  503: { openai: "server_error", code: "server_is_overloaded", messages: "overloaded_error" },
  504: { openai: "server_error", code: "timeout", messages: "timeout_error" },
  529: { openai: "server_error", code: "server_is_overloaded", messages: "overloaded_error" },
};

/** The body of an error answer with this status, in the protocol's form. */
export function errorBody(protocol: Protocol, status: number, words: ErrorWords, requestId: string): object {
  const row = ROWS[status] ?? (status >= 500 ? SERVER : INVALID);
  if (protocol === "messages") {
    const error = { type: words.type ?? row.messages, message: words.message };
    return { type: "error", error, request_id: requestId };
  }
  const { message, param = null, code = row.code, type = row.openai } = words;
  return { error: { message, type, param, code } };
}
