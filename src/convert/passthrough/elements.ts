/** Edits of the elements of a list inside a body: every byte of those that stay is kept (ARCHITECTURE.md promise 6). */
import { elementSpans, findNested } from "../../wire/json.ts";

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** The array at a path with elements written anew, or left out where `edit` gives nothing. */
export function editElements(
  body: Uint8Array,
  path: readonly string[],
  edit: (element: Uint8Array, index: number) => Uint8Array | undefined,
): Buffer {
  const span = findNested(body, path);
  const array = span ? body.subarray(span.start, span.end) : new Uint8Array();
  const pieces: Uint8Array[] = [];
  let index = 0;
  for (const { start, end } of elementSpans(array)) {
    const element = edit(array.subarray(start, end), index++);
    if (element) pieces.push(pieces.length === 0 ? OPEN : COMMA, element);
  }
  return Buffer.concat(pieces.length === 0 ? [OPEN, CLOSE] : [...pieces, CLOSE]);
}
