/** What changes the prices of tokens: the tier, speed, region or output that a body asks for (`price.tiers`). */

import { isGiven, isObject, type JsonObject } from "../json-object.ts";
import { slipOf } from "../words/nearest.ts";

interface Tier {
  /** The tier's name in the price table. Several at once are joined, because the combination has its own price. */
  readonly name: string;
  /** The first member that asks for it. */
  readonly param: string;
}

/** Members that name a tier, and how to read them. */
const TIERS: readonly { readonly param: string; readonly read: (json: JsonObject) => unknown }[] = [
  { param: "service_tier", read: (json) => json.service_tier },
  { param: "speed", read: (json) => json.speed },
  { param: "inference_geo", read: (json) => json.inference_geo },
  { param: "reasoning.mode", read: ({ reasoning }) => (isObject(reasoning) ? reasoning.mode : undefined) },
];
/** Words that mean the standard prices: none of them is ever charged as a tier. */
const STANDARD: ReadonlySet<string> = new Set(["auto", "default", "standard", "standard_only", "global"]);

/** Joins the names of tiers that are requested together. */
const JOINT = "+";

interface TierFault {
  readonly param: string;
  readonly demand: string;
  /** The value that was found instead. */
  readonly value: unknown;
}

/** A member that should name a tier but is not a string. */
export function tierFault(json: JsonObject): TierFault | undefined {
  for (const { param, read } of TIERS) {
    const value = read(json);
    if (isGiven(value) && typeof value !== "string") return { param, demand: "must be a string", value };
  }
  const { modalities } = json;
  if (!isGiven(modalities)) return undefined;
  const words = Array.isArray(modalities) && modalities.every((word) => typeof word === "string");
  return words ? undefined : { param: "modalities", demand: "must be a list of strings", value: modalities };
}

/** The tier that a body asks for, whether the client's or the one sent upstream; undefined for the standard one. */
export function tierOf(json: JsonObject): Tier | undefined {
  const asked: Tier[] = [];
  for (const { param, read } of TIERS) {
    const value = read(json);
    if (typeof value === "string" && !STANDARD.has(value)) asked.push({ name: value, param });
  }
  asked.push(...outputsOf(json));
  const [first] = asked;
  return first && { name: asked.map(({ name }) => name).join(JOINT), param: first.param };
}

/** Whether a tier equals `whole`, or is what remains of it if some of its members are not sent. */
export function isPartOfTier(name: string, whole: string): boolean {
  const parts = new Set(whole.split(JOINT));
  return name.split(JOINT).every((part) => parts.has(part));
}

/** Audio and images in the answer cost more than text. */
function outputsOf({ modalities, audio }: JsonObject): readonly Tier[] {
  if (modalities === undefined && !isGiven(audio)) return [];
  const words: unknown[] = Array.isArray(modalities) ? [...modalities] : [];
  const asked = new Set(words.filter((word) => word !== "text"));
  const outputs = [...asked].sort().map((word) => ({ name: String(word), param: "modalities" }));
  return !isGiven(audio) || asked.has("audio") ? outputs : [...outputs, { name: "audio", param: "audio" }];
}

/**
 * Words by the members above. Servers invent words of their own, so any word is a tier; these serve to detect typos.
 */
const WORDS: readonly ReadonlySet<string>[] = [
  new Set(["priority", "flex", "scale", "fast", "batch"]), // service_tier
  new Set(["fast"]), // speed
  new Set(["us", "eu"]), // inference_geo
  new Set(["pro"]), // reasoning.mode
  new Set(["audio", "image", "video"]), // modalities, audio
];
const KNOWN: ReadonlySet<string> = new Set(WORDS.flatMap((words) => [...words]));

/**
 * Why no request can ever have this tier, and the probably intended name if one is similar; undefined if a request can.
 */
export function tierNameFault(name: string): { readonly why: string; readonly meant?: string } | undefined {
  const parts = name.split(JOINT);
  if (parts.includes("")) return { why: "must be words joined by +" };
  const standard = parts.find((part) => STANDARD.has(part));
  if (standard !== undefined) {
    return {
      why: `must not contain "${standard}": it asks for the standard prices, so no request has a tier for it`,
    };
  }
  const meant = inOrder(parts.map((part) => slipOf(part, KNOWN) ?? part)).join(JOINT);
  if (meant === name) return undefined;
  return { why: "must be a tier that a request can ask for, its words in the order of docs/members.md", meant };
}

/** The words in the order in which a request's are joined; unchanged if one of them is not known. */
function inOrder(parts: readonly string[]): readonly string[] {
  if (parts.some((part) => !KNOWN.has(part))) return parts;
  return [...parts].sort((one, other) => placeOf(one) - placeOf(other));
}

/** The index of the first member that has the word. */
function placeOf(word: string): number {
  return WORDS.findIndex((words) => words.has(word));
}
