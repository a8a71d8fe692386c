/** Edits of the elements of a list inside a body: every byte of those that stay is kept (ARCHITECTURE.md promise 6). */
import { elementSpans, findNested } from "../../wire/json.ts";

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** An element as it is to be; undefined: it is left out. */
export type EditElement = (element: Uint8Array, index: number) => Uint8Array | undefined;

/** The array at a path with elements written anew, or left out where `edit` gives nothing. */
export function editElements(body: Uint8Array, path: readonly string[], edit: EditElement): Buffer {
  const span = findNested(body, path);
  return editArray(span ? body.subarray(span.start, span.end) : new Uint8Array(), edit);
}

/** A body whose array at a path is edited, every other byte as it was; the body itself where the path leads nowhere. */
export function withElements(body: Uint8Array, path: readonly string[], edit: EditElement): Uint8Array {
  const span = findNested(body, path);
  if (!span) return body;
  const edited = editArray(body.subarray(span.start, span.end), edit);
  return Buffer.concat([body.subarray(0, span.start), edited, body.subarray(span.end)]);
}

/** The same of an array alone. @param array a valid JSON text; what is no array becomes an empty one. */
export function editArray(array: Uint8Array, edit: EditElement): Buffer {
  const pieces: Uint8Array[] = [];
  let index = 0;
  for (const { start, end } of elementSpans(array)) {
    const element = edit(array.subarray(start, end), index++);
    if (element) pieces.push(pieces.length === 0 ? OPEN : COMMA, element);
  }
  return Buffer.concat(pieces.length === 0 ? [OPEN, CLOSE] : [...pieces, CLOSE]);
}
