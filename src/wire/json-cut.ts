/** Removes members from the bytes of a valid JSON text, at any depth. */
import { type JsonSpan, nameIn, skipValue } from "./json-nested.ts";
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipKnown, skipSpace } from "./json-tokens.ts";

/**
 * What happens to a member: it is removed, it stays unchanged, or it stays and its value is searched with this context.
 */
export type MemberCut<T> = "remove" | "keep" | { readonly under: T };

/**
 * Removes members from an object, or from the objects of an array, in one pass; no other byte changes.
 * @param value a valid JSON text whose depth is bounded (JSON_LIMITS).
 * @param cutOf gets each name (escapes decoded) of a searched object, and the context of the object.
 * @returns the value itself if nothing is removed.
 */
export function withoutMembers<T>(
  value: Uint8Array,
  under: T,
  cutOf: (name: string, under: T) => MemberCut<T>,
): Uint8Array {
  const cuts: JsonSpan[] = [];
  findCuts(value, skipSpace(value, 0), under, cutOf, cuts);
  if (cuts.length === 0) return value;
  const left = Buffer.allocUnsafe(cuts.reduce((length, { start, end }) => length - (end - start), value.length));
  let from = 0;
  let to = 0;
  for (const { start, end } of [...cuts, { start: value.length, end: value.length }]) {
    left.set(value.subarray(from, start), to);
    to += start - from;
    from = end;
  }
  return left;
}

/**
 * Finds the bytes to cut from the value that begins at `at`.
 * @param under the context for the value's objects.
 * @param cuts the result is appended, in order.
 * @returns one past the value's last byte.
 */
function findCuts<T>(
  body: Uint8Array,
  at: number,
  under: T,
  cutOf: (name: string, under: T) => MemberCut<T>,
  cuts: JsonSpan[],
): number {
  if (body[at] === OPEN_ARRAY) {
    let i = skipSpace(body, at + 1);
    while (i < body.length && body[i] !== CLOSE_ARRAY) {
      const end = findCuts(body, i, under, cutOf, cuts);
      if (end < 0) return end;
      i = skipSpace(body, end);
      if (body[i] === COMMA) i = skipSpace(body, i + 1);
    }
    return i + 1;
  }
  if (body[at] !== OPEN_OBJECT) return skipValue(body, at);
  let i = skipSpace(body, at + 1);
  // A member after one that stays is removed with the comma before it; a member before all that stay, with the comma
  // after it.
  let previousEnd = -1;
  while (body[i] === QUOTE) {
    const nameEnd = skipKnown(body, i);
    if (nameEnd < 0) return nameEnd;
    const cut = cutOf(nameIn(body, i, nameEnd), under);
    const start = skipSpace(body, skipSpace(body, nameEnd) + 1);
    const end = typeof cut === "string" ? skipValue(body, start) : findCuts(body, start, cut.under, cutOf, cuts);
    if (end < 0) return end;
    let next = skipSpace(body, end);
    if (body[next] === COMMA) next = skipSpace(body, next + 1);
    if (cut === "remove") cuts.push(previousEnd < 0 ? { start: i, end: next } : { start: previousEnd, end });
    if (cut !== "remove" || previousEnd >= 0) previousEnd = end;
    i = next;
  }
  return i + 1;
}
