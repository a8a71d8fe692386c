/**
 * Names of tiers: the words of the members that change the prices of tokens, joined by + where a request asks for several at
 * once. Servers make up words of their own, so any word is a tier; the known ones are listed to recognise a slip.
 */
import { slipOf } from "../nearest.ts";

/** Words that mean the standard prices: none of them is ever charged as a tier. */
export const STANDARD_TIERS: ReadonlySet<string> = new Set(["auto", "default", "standard", "standard_only", "global"]);

/** Known words by member, in the order in which they are joined. */
const WORDS: readonly ReadonlySet<string>[] = [
  new Set(["priority", "flex", "scale", "fast", "batch"]), // service_tier
  new Set(["fast"]), // speed
  new Set(["us", "eu"]), // inference_geo
  new Set(["pro"]), // reasoning.mode
  new Set(["audio", "image", "video"]), // modalities, audio
];
const KNOWN: ReadonlySet<string> = new Set(WORDS.flatMap((words) => [...words]));

/** Why no request can ever be of this tier, and the name that was meant where one is near; undefined: one can. */
export function tierNameFault(name: string): { readonly why: string; readonly meant?: string } | undefined {
  const parts = name.split("+");
  if (parts.includes("")) return { why: "must be words joined by +" };
  const standard = parts.find((part) => STANDARD_TIERS.has(part));
  if (standard !== undefined) {
    return {
      why: `must not hold "${standard}": that asks for the standard prices, and no request is of a tier for it`,
    };
  }
  const meant = inOrder(parts.map((part) => slipOf(part, KNOWN) ?? part)).join("+");
  if (meant === name) return undefined;
  return { why: "must be a tier that a request can ask for, its words in the order of docs/members.md", meant };
}

/** The words in the order in which a request's are joined; where one of them is not known, as they are. */
function inOrder(parts: readonly string[]): readonly string[] {
  if (parts.some((part) => !KNOWN.has(part))) return parts;
  return [...parts].sort((one, other) => placeOf(one) - placeOf(other));
}

/** The first member that has the word. */
function placeOf(word: string): number {
  return WORDS.findIndex((words) => words.has(word));
}
