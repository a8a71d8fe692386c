/** Edits elements of a list inside a body; every byte of the other elements is kept (ARCHITECTURE.md promise 6). */
import { elementSpans, findNested } from "../../wire/json.ts";

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** Returns the new element; undefined removes it. */
export type EditElement = (element: Uint8Array, index: number) => Uint8Array | undefined;

/** The array at a path, with its elements edited or removed by `edit`. */
export function editElements(body: Uint8Array, path: readonly string[], edit: EditElement): Buffer {
  const span = findNested(body, path);
  return editArray(span ? body.subarray(span.start, span.end) : new Uint8Array(), edit);
}

/**
 * The body with the array at a path edited and every other byte kept; the body itself if there is nothing at the path.
 */
export function withElements(body: Uint8Array, path: readonly string[], edit: EditElement): Uint8Array {
  const span = findNested(body, path);
  if (!span) return body;
  const edited = editArray(body.subarray(span.start, span.end), edit);
  return Buffer.concat([body.subarray(0, span.start), edited, body.subarray(span.end)]);
}

/** Edits an array. @param array valid JSON; anything but an array becomes an empty one. */
export function editArray(array: Uint8Array, edit: EditElement): Buffer {
  const pieces: Uint8Array[] = [];
  let index = 0;
  for (const { start, end } of elementSpans(array)) {
    const element = edit(array.subarray(start, end), index++);
    if (element) pieces.push(pieces.length === 0 ? OPEN : COMMA, element);
  }
  return Buffer.concat(pieces.length === 0 ? [OPEN, CLOSE] : [...pieces, CLOSE]);
}
