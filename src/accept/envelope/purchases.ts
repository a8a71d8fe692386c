/** What a request asks for beside tokens: dearer tokens, extras, other models (ARCHITECTURE.md promise 14). */
import { type Refusal, refusal } from "../../values/errors.ts";
import { STANDARD_TIERS } from "../../values/members/tiers.ts";
import { MEMBERS } from "../../values/members.ts";
import type { Protocol, ProtocolFacts } from "../../values/protocol.ts";
import { type Json, member } from "./conversation.ts";

/** What changes the prices of tokens. */
export interface Tier {
  /** The tier's name in the price table; several at once are joined, since the pair costs what neither says alone. */
  readonly name: string;
  /** The first member that asks for it. */
  readonly param: string;
}

/** Members that name a tier, in the order in which `values/members/tiers.ts` knows their words. */
const TIERS: readonly { readonly param: string; readonly read: (json: Json) => unknown }[] = [
  { param: "service_tier", read: (json) => json.service_tier },
  { param: "speed", read: (json) => json.speed },
  { param: "inference_geo", read: (json) => json.inference_geo },
  { param: "reasoning.mode", read: (json) => member(json.reasoning, "mode") },
];

/** A member that names a tier and is no word. */
export function tierFault(json: Json): { readonly param: string; readonly demand: string } | undefined {
  for (const { param, read } of TIERS) {
    const value = read(json);
    if (!isAbsent(value) && typeof value !== "string") return { param, demand: "must be a string" };
  }
  const { modalities } = json;
  if (isAbsent(modalities)) return undefined;
  const words = Array.isArray(modalities) && modalities.every((word) => typeof word === "string");
  return words ? undefined : { param: "modalities", demand: "must be a list of words" };
}

/** The tier that a body asks for; undefined for the standard one. */
export function tierOf(json: Json): Tier | undefined {
  const asked: Tier[] = [];
  for (const { param, read } of TIERS) {
    const value = read(json);
    if (typeof value === "string" && !STANDARD_TIERS.has(value)) asked.push({ name: value, param });
  }
  asked.push(...outputsOf(json));
  const [first] = asked;
  return first && { name: asked.map(({ name }) => name).join("+"), param: first.param };
}

/** Sound and pictures in the answer cost more than text. */
function outputsOf({ modalities, audio }: Json): Tier[] {
  const words: unknown[] = Array.isArray(modalities) ? [...modalities] : [];
  const asked = new Set(words.filter((word) => word !== "text"));
  const outputs = [...asked].sort().map((word) => ({ name: String(word), param: "modalities" }));
  return isAbsent(audio) || asked.has("audio") ? outputs : [...outputs, { name: "audio", param: "audio" }];
}

/** The members that ask for an extra, in the order of the body. */
export function optionsOf(protocol: Protocol, json: Json): readonly string[] {
  const { standings } = MEMBERS[protocol];
  return Object.keys(json).filter((name) => standings.get(name) === "option" && !isOff(name, json[name]));
}

/** What says "no" in each: nothing, false, an empty list or object, and the numbers and words that change nothing. */
function isOff(name: string, value: unknown): boolean {
  if (isAbsent(value) || value === false) return true;
  if (name === "best_of" || name === "n" || name === "num_beams") return value === 1;
  if (name === "priority") return value === 0;
  if (name === "search_parameters") return member(value, "mode") === "off";
  if (name === "access_programs") return Object.values(value as Json).every((word) => word === "standard");
  // An empty object switches a search on; an empty list names nothing.
  return Array.isArray(value) && value.length === 0;
}

/** An output limit under a name that the hold does not follow. */
export function limitAlias(facts: ProtocolFacts, json: Json): Refusal | undefined {
  const { standings } = MEMBERS[facts.name];
  const param = Object.keys(json).find((name) => standings.get(name) === "limit" && !isAbsent(json[name]));
  if (param === undefined) return undefined;
  const detail = `"${param}" is an output limit under another name; use "${facts.limitFields[0]}".`;
  return refusal("unsupported_parameter", { param, detail });
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
