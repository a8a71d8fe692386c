/** One attempt to deliver a message to its receiver. */
import { codeOfFailure } from "../values/program/error-text.ts";
import { BUILD } from "../values/program/program.ts";
import type { NoticeSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { type NoticeMessage, signedHeaders } from "./message.ts";

/** Timeout for the receiver's answer. */
const TIMEOUT_MS = 15_000;
/** Maximum that a receiver can ask us to wait. */
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

type SendCause = "answer" | "timeout" | "connection";

export interface Sent {
  /** `gone`: 410, the receiver wants no more notices. */
  readonly outcome: "taken" | "gone" | "failed";
  readonly status: number | undefined;
  readonly ms: number;
  /** Why it was not accepted, as a text without any part of the receiver's address; empty if it was accepted. */
  readonly reason: string;
  readonly cause: SendCause | undefined;
  readonly retryAfterMs: number;
}

interface SendParts {
  readonly clock: Clock;
  readonly fetch: typeof fetch;
  /** Aborts the attempt. */
  readonly signal: AbortSignal;
}

/**
 * Sends the message. Never rejects. Redirects are not followed: they would take the message to an address that is not
 * configured.
 */
export async function send(
  message: NoticeMessage,
  { url, secrets }: Pick<NoticeSettings, "url" | "secrets">,
  { clock, fetch: fetcher, signal }: SendParts,
): Promise<Sent> {
  const startedMs = clock.monotonicMs();
  const ended = new AbortController();
  const end = () => ended.abort();
  let isLate = false;
  const cancel = clock.after(TIMEOUT_MS, () => {
    isLate = true;
    end();
  });
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  const base = { retryAfterMs: 0, cause: undefined, reason: "" };
  try {
    const answer = await fetcher(url.reveal(), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": `tollgate/${BUILD.version}`,
        ...signedHeaders(message, secrets, clock.wallMs()),
      },
      body: message.body,
      redirect: "manual",
      signal: ended.signal,
    });
    // The body is not read. If it is long, the connection is dropped instead of reused.
    await answer.body?.cancel().catch(() => undefined);
    const { status } = answer;
    const ms = Math.round(clock.monotonicMs() - startedMs);
    if (status >= 200 && status < 300) return { ...base, outcome: "taken", status, ms };
    if (status === 410) return { ...base, outcome: "gone", status, ms, reason: "it answered 410 (gone)" };
    const retryAfterMs = retryAfterOf(answer.headers.get("retry-after"), clock.wallMs());
    const hint = status >= 300 && status < 400 ? "; redirects are not followed" : "";
    return { outcome: "failed", status, ms, reason: `it answered ${status}${hint}`, cause: "answer", retryAfterMs };
  } catch (error) {
    const ms = Math.round(clock.monotonicMs() - startedMs);
    const cause = isLate ? "timeout" : "connection";
    const reason = isLate ? `no answer within ${TIMEOUT_MS / 1_000} s` : `no connection: ${codeOfFailure(error)}`;
    return { ...base, outcome: "failed", status: undefined, ms, reason, cause };
  } finally {
    cancel();
    signal.removeEventListener("abort", end);
  }
}

/** Seconds or a date, as milliseconds from now. */
function retryAfterOf(header: string | null, nowMs: number): number {
  if (header === null) return 0;
  const ms = /^[0-9]{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? 0 : Math.min(RETRY_AFTER_MAX_MS, Math.max(0, ms));
}
