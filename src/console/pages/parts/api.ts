/** What the pages ask of their gateway. Amounts come and go as text: a number of a browser is not exact. */

/** Why something was not done, in the gateway's own words. */
export class AskRefused extends Error {
  override readonly name = "AskRefused";
  readonly status: number;
  /** What programs match on; `unreachable` when no answer came. */
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

/** Where this set of pages is, without a slash at the end. */
export const ROOT = document.documentElement.dataset.root ?? "";

/** Called when the gateway says that nobody is signed in any more. */
let onSignedOut = () => {};
export function whenSignedOut(call: () => void): void {
  onSignedOut = call;
}

interface AskOptions {
  readonly method?: "GET" | "POST" | "PUT";
  readonly body?: object | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether it is to arrive although the page is being left. */
  readonly keepalive?: boolean;
}

/**
 * Asks the gateway.
 * @param path of the API, with its query; each name in it encoded by `encodeURIComponent`.
 * @throws AskRefused
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
    throw new AskRefused(0, "unreachable", "", "");
  });
  const text = await response.text();
  const answer = readJson(text);
  if (response.ok) return answer as T;
  const { code = "unreadable", message = "", remedy = "" } = (answer as Errors | undefined)?.error ?? {};
  if (response.status === 401 && code === "signed_out") onSignedOut();
  throw new AskRefused(response.status, code, message, remedy);
}

interface Errors {
  readonly error?: { readonly code?: string; readonly message?: string; readonly remedy?: string };
}

/** An operator's pages ask the admin API itself. */
const API = document.documentElement.dataset.api ?? `${ROOT}/api`;

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** For a write that must count once however often it is sent: made when a form is opened, not when it is sent. */
export function newOnceId(): string {
  return `web-${crypto.randomUUID()}`;
}
