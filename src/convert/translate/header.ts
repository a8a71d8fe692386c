/** The header that tells a client what of its request did not reach the model's server (ARCHITECTURE.md promise 9). */

/** The most names in the header, and the most characters of one. */
const NAMES_MAX = 20;
const NAME_CHARS_MAX = 64;

/** The header that declares the losses. Names may hold words of a client's body, so only harmless characters pass. */
export function translationHeader(dropped: readonly string[]): string {
  if (dropped.length === 0) return "exact";
  const names = dropped.slice(0, NAMES_MAX).map((name) => name.slice(0, NAME_CHARS_MAX).replace(/[^\w.[\]-]/g, "_"));
  const more = dropped.length > NAMES_MAX ? `,+${dropped.length - NAMES_MAX}` : "";
  return `lossy; dropped=${names.join(",")}${more}`;
}
