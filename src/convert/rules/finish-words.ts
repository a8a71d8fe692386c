/**
 * Finish reasons of many vendors' servers (docs/translation-rules.md rule 43). A truncation, a refusal and a failure
 * must not be read as a normal end: an agent would take half an answer for a whole one.
 */
import type { StopReason } from "../hub-reply.ts";

/** What a finish reason means. `failure`: the server broke off, and a retry may help. */
export type Finish = StopReason | "failure";

/**
 * Least serious first. Of two reasons in one word (`content_filter: SAFETY`, `stop: MAX_TOKENS`) the more serious one
 * counts.
 */
const SEVERITIES: readonly Finish[] = [
  ...(["end", "stop-sequence", "tool-calls", "pause"] as const),
  ...(["output-limit", "context-limit", "refusal", "failure"] as const),
];

/** Finish reasons that PARTS does not explain. Sources: docs/translation-rules.md rule 43. */
const WORDS: ReadonlyMap<string, Finish> = new Map([
  ["stop", "end"],
  ["end_turn", "end"],
  ["complete", "end"],
  ["completed", "end"],
  ["eos", "end"],
  ["eos_token", "end"],
  ["stop_sequence", "stop-sequence"],
  ["tool_calls", "tool-calls"],
  ["tool_call", "tool-calls"],
  ["tool_use", "tool-calls"],
  ["function_call", "tool-calls"],
  ["pause_turn", "pause"],
  ["length", "output-limit"],
  ["model_length", "context-limit"],
  // Responses: the requested number of messages is reached; another input has arrived. Neither cuts an answer short.
  ["max_messages", "end"],
  ["steered", "end"],
  // Gemini: stopped for an unnamed reason, or because of the language of the answer.
  ["other", "refusal"],
  ["language", "refusal"],
  ["no_image", "failure"],
  ["missing_thought_signature", "failure"],
  ["too_many_tool_calls", "failure"],
  ["insufficient_system_resource", "failure"],
]);

/** For all other words: the first pattern that matches. */
const PARTS: readonly (readonly [RegExp, Finish])[] = [
  [/error|fail|malformed|abort|cancel|time_?out|invalid|unexpected|exception|unavailable|overload|crash/, "failure"],
  [/filter|safety|prohibit|block|guardrail|sensitive|policy|toxic|recitation|spii|moderat|refus|harm/, "refusal"],
  [/context|window/, "context-limit"],
  [/length|max_|limit|truncat|token|budget/, "output-limit"],
];

/** Failures that the tools or the history of a request cause; a retry would cost again. */
const OF_REQUEST = /malformed|too_many_tool_calls|unexpected_tool_call|missing_thought_signature/;
/** Failures of the server, not of the model. */
const OF_SERVER = /unavailable|overload|crash|system_resource/;

/** Values that mean that there is no reason yet; some servers send them with every chunk. */
const NO_REASON: ReadonlySet<string> = new Set(["", "null", "none", "unspecified"]);

/**
 * Reads a finish or stop reason, also in uppercase, with a prefix (`FinishReason.STOP`, `FINISH_REASON_SAFETY`), or
 * with two reasons.
 * @returns undefined if it is no reason; `end` for an unknown word.
 */
export function finishOf(value: unknown): Finish | undefined {
  const reasons = reasonsIn(value);
  return reasons.length === 0 ? undefined : (mostSevere(reasons) ?? "end");
}

/** Like `finishOf`, but undefined for an unknown word, which the caller interprets. */
export function knownFinish(value: unknown): Finish | undefined {
  return mostSevere(reasonsIn(value));
}

/** The cause of a failure: the request, the server, or the model alone. */
export function failureOf(value: unknown): "request" | "server" | "model" {
  const reasons = reasonsIn(value);
  if (reasons.some((word) => OF_REQUEST.test(word))) return "request";
  return reasons.some((word) => OF_SERVER.test(word)) ? "server" : "model";
}

function reasonsIn(value: unknown): readonly string[] {
  if (typeof value !== "string") return [];
  if (WORDS.has(value)) return [value];
  return value
    .split(/[\s:;,|/]+/)
    .map(plain)
    .filter((word) => !NO_REASON.has(word));
}

function mostSevere(reasons: readonly string[]): Finish | undefined {
  const meant = reasons.map(meaningOf).filter((finish) => finish !== undefined);
  return meant.length === 0 ? undefined : meant.reduce(moreSevere);
}

/** The more serious of two reasons. */
export function moreSevere(one: Finish, other: Finish | undefined): Finish {
  return other !== undefined && SEVERITIES.indexOf(other) > SEVERITIES.indexOf(one) ? other : one;
}

function plain(word: string): string {
  const snake = word
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase();
  return snake.replace(/^(?:finish|stop)_?reason[._]/, "");
}

function meaningOf(word: string): Finish | undefined {
  return WORDS.get(word) ?? PARTS.find(([part]) => part.test(word))?.[1];
}

/**
 * A reply in its own protocol, with an unknown finish reason replaced by the protocol's own; no other byte changes.
 * @param text a body or event.
 * @param member `finish_reason` or `stop_reason`.
 * @param own JSON text that replaces a word; undefined keeps it.
 */
export function withOwnFinish(text: string, member: string, own: (word: string) => string | undefined): string {
  // Inside a string, a backslash precedes each quote, so only members match.
  const pattern = new RegExp(`(?<!\\\\)("${member}"\\s*:\\s*)"([^"\\\\]*)"`, "g");
  return text.replace(pattern, (whole, name: string, word: string) => {
    const instead = own(word);
    return instead === undefined ? whole : name + instead;
  });
}
