/** JSON of an upstream that we hand on as values must be writable again: the runtime's writer recurses, its reader does not. */

/** How deep arguments, reasoning items and probabilities may nest. */
export const JSON_DEPTH_MAX = 256;

/** Whether no array or object in the value is deeper than `depthMax`. */
export function nestsWithin(value: unknown, depthMax: number = JSON_DEPTH_MAX): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depthMax === 0) return false;
  for (const member of Object.values(value)) if (!nestsWithin(member, depthMax - 1)) return false;
  return true;
}

/** Compact JSON text of a value; undefined when it nests too deep to be written. */
export function compactJson(value: unknown): string | undefined {
  return nestsWithin(value) ? JSON.stringify(value) : undefined;
}
