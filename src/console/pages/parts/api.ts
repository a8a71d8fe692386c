/**
 * Requests of the pages to their gateway. Amounts are text in both directions, because numbers in a browser are not
 * exact.
 */

/** Why a request failed, in the gateway's words. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** A code for programs; `unreachable` if no answer arrived. */
  readonly code: string;
  /** What can be done about it. */
  readonly remedy: string;

  constructor(status: number, code: string, message: string, remedy: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.remedy = remedy;
  }
}

/** The path of this set of pages, without a slash at the end. */
export const ROOT = document.documentElement.dataset.root ?? "";

/** Registers a function that is called when the gateway reports that the session has ended. */
let onSignedOut = () => {};
export function whenSignedOut(call: () => void): void {
  onSignedOut = call;
}

interface AskOptions {
  readonly method?: "GET" | "POST" | "PUT";
  readonly body?: object | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether the request must arrive although the page is being left. */
  readonly keepalive?: boolean;
}

/**
 * Sends a request to the gateway.
 * @param path of the API, with its query; each name in it encoded by `encodeURIComponent`
 * @throws ApiError
 */
export async function ask<T>(
  path: string,
  { method = "GET", body, signal, keepalive = false }: AskOptions = {},
): Promise<T> {
  const response = await fetch(API + path, {
    method,
    headers: { "x-tollgate-console": "1", ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
    credentials: "same-origin",
    keepalive,
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "", "");
  });
  const text = await response.text();
  const answer = readJson(text);
  if (response.ok) return answer as T;
  const { code = "unreadable", message = "", remedy = "" } = (answer as Errors | undefined)?.error ?? {};
  if (response.status === 401 && code === "signed_out") onSignedOut();
  throw new ApiError(response.status, code, message, remedy);
}

interface Errors {
  readonly error?: { readonly code?: string; readonly message?: string; readonly remedy?: string };
}

/** An operator's pages call the admin API itself. */
const API = document.documentElement.dataset.api ?? `${ROOT}/api`;

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * An id for a write that must count once, however often it is sent. Created when a form is opened, not when it is sent.
 */
export function newOnceId(): string {
  return `web-${crypto.randomUUID()}`;
}
