/**
 * System text: the attribution line, and text in the middle of a conversation (docs/translation-rules.md rules 10 and
 * 11).
 */
import type { SystemTurn, TextPart } from "../hub.ts";

const ATTRIBUTION = "x-anthropic-billing-header:";

/**
 * System text without Claude Code's attribution line, whose nonce changes with each request and defeats prompt caches
 * (rule 11). Only this line is removed.
 */
export function withoutAttribution(text: string): string {
  if (!text.startsWith(ATTRIBUTION)) return text;
  const lineEnd = text.indexOf("\n");
  return lineEnd < 0 ? "" : text.slice(lineEnd + 1);
}

/** The texts of parts as one string, joined by blank lines. */
export function joinTexts(parts: readonly TextPart[]): string {
  return parts
    .map((part) => part.text)
    .filter((text) => text !== "")
    .join("\n\n");
}

/** System text as part of a user message, for an upstream that takes no system turn in the middle (rule 10). */
export function reminder(turn: SystemTurn): string {
  return `<system-reminder>\n${joinTexts(turn.parts)}\n</system-reminder>`;
}

/**
 * Anything but white space. To `trim`, a byte order mark is white space; to the servers that refuse blank text, it is
 * not.
 */
const INK = /[\S\ufeff]/;

/** Whether a text is empty or white space only, which messages refuses (rule 15). */
export function isBlank(text: string): boolean {
  return !INK.test(text);
}

/**
 * A text without white space at its end, where `isBlank` decides what white space is. It tests no character by itself,
 * because the client chooses how many there are.
 */
export function withoutBlankEnd(text: string): string {
  return text.slice(0, Math.max(text.trimEnd().length, text.lastIndexOf("\ufeff") + 1));
}

/** The text of a failed tool result, for a target that has no flag for it (rule 18). */
export function errorText(text: string): string {
  return /^error/i.test(text) ? text : `Error: ${text}`;
}
