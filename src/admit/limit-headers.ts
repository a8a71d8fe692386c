/** Rate-limit headers as each protocol's SDKs read them. */
import type { BucketState, LimitStates } from "../store/admission.ts";
import type { Protocol } from "../values/protocol.ts";
import { utcDay } from "../values/time.ts";

/**
 * The headers for the state of the buckets after a decision. A bucket that does not exist adds none.
 * @param wallMs the current time; the messages protocol gives an instant, the other two a duration.
 */
export function limitHeaders(protocol: Protocol, states: LimitStates, wallMs: number): Record<string, string> {
  const headers: Record<string, string> = {};
  const names = protocol === "messages" ? MESSAGES_NAMES : CHAT_NAMES;
  const reset = (state: BucketState) =>
    protocol === "messages" ? instant(wallMs + state.resetMs) : duration(state.resetMs);
  for (const bucket of BUCKETS) {
    const state = states[bucket];
    if (!state) continue;
    headers[names[bucket].limit] = String(state.limit);
    headers[names[bucket].remaining] = String(state.remaining);
    headers[names[bucket].reset] = reset(state);
  }
  return headers;
}

const BUCKETS = ["requests", "tokens"] as const;

const CHAT_NAMES = {
  requests: {
    limit: "x-ratelimit-limit-requests",
    remaining: "x-ratelimit-remaining-requests",
    reset: "x-ratelimit-reset-requests",
  },
  tokens: {
    limit: "x-ratelimit-limit-tokens",
    remaining: "x-ratelimit-remaining-tokens",
    reset: "x-ratelimit-reset-tokens",
  },
};

const MESSAGES_NAMES = {
  requests: {
    limit: "anthropic-ratelimit-requests-limit",
    remaining: "anthropic-ratelimit-requests-remaining",
    reset: "anthropic-ratelimit-requests-reset",
  },
  tokens: {
    limit: "anthropic-ratelimit-tokens-limit",
    remaining: "anthropic-ratelimit-tokens-remaining",
    reset: "anthropic-ratelimit-tokens-reset",
  },
};

const DAY_S = 86_400;

/**
 * Whole seconds, as an RFC 3339 date. 0.2 us instead of 2 for formatting a Date, because the day is nearly always the
 * same as in the call before.
 */
function instant(epochMs: number): string {
  const second = Math.floor(epochMs / 1_000) % DAY_S;
  const minute = Math.floor(second / 60);
  return `${utcDay(epochMs)}T${two(Math.floor(minute / 60))}:${two(minute % 60)}:${two(second % 60)}Z`;
}

const two = (value: number): string => (value < 10 ? `0${value}` : `${value}`);

/** `6m0s`, `1.5s`, `250ms`: the format that these clients parse. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms}ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms % 60_000) / 1_000;
  return minutes > 0 ? `${minutes}m${Math.floor(seconds)}s` : `${seconds}s`;
}
