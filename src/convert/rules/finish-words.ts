/**
 * Why servers say that they stopped, in the words of many makers (docs/translation-rules.md rule 43). A truncation, a
 * refusal and a failure must not pass for a plain end: an agent would take half an answer for a whole one.
 */
import type { StopReason } from "../hub.ts";

/** What a word means. `failure`: the server broke off, and repeating the request may help. */
export type Finish = StopReason | "failure";

/** Gravest last: of two reasons in one word (`content_filter: SAFETY`, `stop: MAX_TOKENS`) the graver one counts. */
const GRAVITY: readonly Finish[] = [
  ...(["end", "stop-sequence", "tool-calls", "pause"] as const),
  ...(["output-limit", "context-limit", "refusal", "failure"] as const),
];

/** Words that their parts would not explain. Sources: docs/translation-rules.md rule 43. */
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
  // Responses: as many messages as were asked for; another input has come. Neither cuts an answer short.
  ["max_messages", "end"],
  ["steered", "end"],
  // Gemini: stopped for a reason that it does not give, or for the language of the answer.
  ["other", "refusal"],
  ["language", "refusal"],
  ["no_image", "failure"],
  ["missing_thought_signature", "failure"],
  ["too_many_tool_calls", "failure"],
  ["insufficient_system_resource", "failure"],
]);

/** Of words that nobody listed: the first that fits. */
const PARTS: readonly (readonly [RegExp, Finish])[] = [
  [/error|fail|malformed|abort|cancel|time_?out|invalid|unexpected|exception|unavailable|overload|crash/, "failure"],
  [/filter|safety|prohibit|block|guardrail|sensitive|policy|toxic|recitation|spii|moderat|refus|harm/, "refusal"],
  [/context|window/, "context-limit"],
  [/length|max_|limit|truncat|token|budget/, "output-limit"],
];

/** Failures that a request brings about by its tools or its history: asked again, they would cost again. */
const OF_REQUEST = /malformed|too_many_tool_calls|unexpected_tool_call|missing_thought_signature/;
/** Failures of the server rather than of the model. */
const OF_SERVER = /unavailable|overload|crash|system_resource/;

/** Words that say that there is no reason yet; some servers send them with every chunk. */
const NO_REASON: ReadonlySet<string> = new Set(["", "null", "none", "unspecified"]);

/**
 * Reads a finish or stop reason, upper case, prefixed (`FinishReason.STOP`, `FINISH_REASON_SAFETY`) and double ones too.
 * @returns undefined when it is none; a plain end for a word that says nothing to us.
 */
export function finishOf(value: unknown): Finish | undefined {
  const reasons = reasonsIn(value);
  return reasons.length === 0 ? undefined : (gravest(reasons) ?? "end");
}

/** The same, but undefined for a word that says nothing to us: what it means is left to its reader. */
export function knownFinish(value: unknown): Finish | undefined {
  return gravest(reasonsIn(value));
}

/** Whose failure a word is that means one: of what was asked for, of the server, or of the model alone. */
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

function gravest(reasons: readonly string[]): Finish | undefined {
  const meant = reasons.map(meaningOf).filter((finish) => finish !== undefined);
  return meant.length === 0 ? undefined : meant.reduce(graver);
}

/** The one of two reasons that counts. */
export function graver(one: Finish, other: Finish | undefined): Finish {
  return other !== undefined && GRAVITY.indexOf(other) > GRAVITY.indexOf(one) ? other : one;
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
 * A reply in its own protocol, with a foreign word for its end put into the protocol's own; no other byte changes.
 * @param text of a body or event.
 * @param member `finish_reason` or `stop_reason`.
 * @param own JSON text of what stands for a word; undefined leaves it.
 */
export function withOwnFinish(text: string, member: string, own: (word: string) => string | undefined): string {
  // Inside a string each quote has a backslash before it, so that only members match.
  const said = new RegExp(`(?<!\\\\)("${member}"\\s*:\\s*)"([^"\\\\]*)"`, "g");
  return text.replace(said, (whole, name: string, word: string) => {
    const instead = own(word);
    return instead === undefined ? whole : name + instead;
  });
}
