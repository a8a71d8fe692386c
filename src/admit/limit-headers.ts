/** Rate-limit headers as each protocol's SDKs read them. */
import type { BucketState, LimitStates } from "../store/admission.ts";
import type { Protocol } from "../values/protocol.ts";

/**
 * The headers for the state of the buckets after a decision; nothing for a bucket that does not exist.
 * @param wallMs the time now; the messages protocol names an instant, the other two a duration.
 */
export function limitHeaders(protocol: Protocol, states: LimitStates, wallMs: number): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, state] of [
    ["requests", states.requests],
    ["tokens", states.tokens],
  ] as const) {
    if (state) Object.assign(headers, protocol === "messages" ? asMessages(name, state, wallMs) : asChat(name, state));
  }
  return headers;
}

function asChat(name: string, state: BucketState): Record<string, string> {
  return {
    [`x-ratelimit-limit-${name}`]: String(state.limit),
    [`x-ratelimit-remaining-${name}`]: String(state.remaining),
    [`x-ratelimit-reset-${name}`]: duration(state.resetMs),
  };
}

function asMessages(name: string, state: BucketState, wallMs: number): Record<string, string> {
  return {
    [`anthropic-ratelimit-${name}-limit`]: String(state.limit),
    [`anthropic-ratelimit-${name}-remaining`]: String(state.remaining),
    [`anthropic-ratelimit-${name}-reset`]: new Date(wallMs + state.resetMs).toISOString().replace(/\.\d+Z$/, "Z"),
  };
}

/** `6m0s`, `1.5s`, `250ms`: the way that these clients know durations. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms % 60_000) / 1_000;
  return minutes > 0 ? `${minutes}m${Math.floor(seconds)}s` : `${seconds}s`;
}
