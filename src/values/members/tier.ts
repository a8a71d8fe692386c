/** What changes the prices of tokens: the tier, speed, region or output that a body asks for (`price.tiers`). */

import { isGiven, isObject, type JsonObject } from "../json-object.ts";
import { slipOf } from "../words/nearest.ts";

interface Tier {
  /** The tier's name in the price table; several at once are joined, since the pair costs what neither says alone. */
  readonly name: string;
  /** The first member that asks for it. */
  readonly param: string;
}

/** Members that name a tier, and the words that mean the standard one. */
const TIERS: readonly { readonly param: string; readonly read: (json: JsonObject) => unknown }[] = [
  { param: "service_tier", read: (json) => json.service_tier },
  { param: "speed", read: (json) => json.speed },
  { param: "inference_geo", read: (json) => json.inference_geo },
  { param: "reasoning.mode", read: ({ reasoning }) => (isObject(reasoning) ? reasoning.mode : undefined) },
];
/** Words that mean the standard prices: none of them is ever charged as a tier. */
const STANDARD: ReadonlySet<string> = new Set(["auto", "default", "standard", "standard_only", "global"]);

/** Between the names of tiers that are asked for at once. */
const JOINT = "+";

interface TierFault {
  readonly param: string;
  readonly demand: string;
  /** What stands there instead. */
  readonly value: unknown;
}

/** A member that names a tier and is no word. */
export function tierFault(json: JsonObject): TierFault | undefined {
  for (const { param, read } of TIERS) {
    const value = read(json);
    if (isGiven(value) && typeof value !== "string") return { param, demand: "must be a string", value };
  }
  const { modalities } = json;
  if (!isGiven(modalities)) return undefined;
  const words = Array.isArray(modalities) && modalities.every((word) => typeof word === "string");
  return words ? undefined : { param: "modalities", demand: "must be a list of words", value: modalities };
}

/** The tier that a body asks for, a client's or one that goes upstream; undefined for the standard one. */
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

/** Whether a tier is this one, or what is left of it where some of its members are not sent. */
export function isPartOfTier(name: string, whole: string): boolean {
  const parts = new Set(whole.split(JOINT));
  return name.split(JOINT).every((part) => parts.has(part));
}

/** Sound and pictures in the answer cost more than text. */
function outputsOf({ modalities, audio }: JsonObject): readonly Tier[] {
  if (modalities === undefined && !isGiven(audio)) return [];
  const words: unknown[] = Array.isArray(modalities) ? [...modalities] : [];
  const asked = new Set(words.filter((word) => word !== "text"));
  const outputs = [...asked].sort().map((word) => ({ name: String(word), param: "modalities" }));
  return !isGiven(audio) || asked.has("audio") ? outputs : [...outputs, { name: "audio", param: "audio" }];
}

/** Words by the members above. Servers make up words of their own, so any word is a tier; these serve to recognise a slip. */
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
  const parts = name.split(JOINT);
  if (parts.includes("")) return { why: "must be words joined by +" };
  const standard = parts.find((part) => STANDARD.has(part));
  if (standard !== undefined) {
    return {
      why: `must not hold "${standard}": that asks for the standard prices, and no request is of a tier for it`,
    };
  }
  const meant = inOrder(parts.map((part) => slipOf(part, KNOWN) ?? part)).join(JOINT);
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
