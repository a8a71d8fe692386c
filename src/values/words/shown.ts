/** Makes text from outside safe to repeat in an answer or a log line. */

/** How keys, tokens and addresses begin, at any place in a text. A text that matches is never repeated. */
const SECRET = /(?:^|[^a-z0-9])(?:sk-|gw1\.|bearer|eyj|akia|gh[opsu]_|xox[abp]-)|:\/\/|data:|-----/i;
const SHOWN_CHARS_MAX = 64;

/**
 * A wrong value as a refusal shows it: clipped. Only its kind is shown if it could be a secret, a person's text (text
 * with white space), or is too large.
 */
export function shownValue(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return "nothing";
  if (value === "") return "an empty string";
  if (/\s/.test(value) || SECRET.test(value)) {
    return `a text of ${value.length} ${value.length === 1 ? "character" : "characters"}`;
  }
  return `"${quoted(value, SHOWN_CHARS_MAX)}"`;
}

/**
 * What a member that counts something must be, for the refusal of this value. The maximum, which no client needs to know,
 * is named only if the value is above it.
 */
export function wholeNumber(min: number, value: unknown): string {
  const isTooLarge = typeof value === "number" && value > Number.MAX_SAFE_INTEGER;
  return isTooLarge ? `a whole number from ${min} to ${Number.MAX_SAFE_INTEGER}` : `a whole number of at least ${min}`;
}

/**
 * Text from outside made safe to repeat: at most `max` characters, control, bidirectional and lone surrogate
 * characters escaped (docs/failure-model.md rows 52, 58 and 77).
 */
export function quoted(text: string, max = 128): string {
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return cut.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this expression must match control characters.
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
