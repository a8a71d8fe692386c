/**
 * Limits the depth of an upstream's JSON that is passed on as values, because the runtime's JSON writer recurses; its
 * parser does not.
 */

/** The greatest depth of arguments, reasoning items and probabilities. */
export const JSON_DEPTH_MAX = 256;

/** Whether no array or object in the value is deeper than `depthMax`. */
export function nestsWithin(value: unknown, depthMax: number = JSON_DEPTH_MAX): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depthMax === 0) return false;
  for (const member of Object.values(value)) if (!nestsWithin(member, depthMax - 1)) return false;
  return true;
}

/** Compact JSON text of a value; undefined if it nests too deep to be written. */
export function compactJson(value: unknown): string | undefined {
  return nestsWithin(value) ? JSON.stringify(value) : undefined;
}
