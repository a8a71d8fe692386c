/** What a request buys in addition to tokens: extras and other models (ARCHITECTURE.md promise 14). */

import { type Refusal, refusal } from "../../values/errors.ts";
import { isGiven, isObject, type JsonObject } from "../../values/json-object.ts";
import { MEMBERS } from "../../values/members.ts";
import type { Protocol, ProtocolFacts } from "../../values/protocol.ts";
import { member } from "./conversation.ts";

/** The members that ask for an extra, in the order of the body. */
export function optionsOf(protocol: Protocol, json: JsonObject): readonly string[] {
  const { meanings } = MEMBERS[protocol];
  const options: string[] = [];
  for (const name of Object.keys(json)) {
    if (meanings.get(name) === "option" && !isOff(name, json[name])) options.push(name);
  }
  return options;
}

/** Whether a value means "no": null, false, an empty list or object, or a number or word that changes nothing. */
function isOff(name: string, value: unknown): boolean {
  if (!isGiven(value) || value === false) return true;
  if (name === "best_of" || name === "n" || name === "num_beams") return value === 1;
  if (name === "priority") return value === 0;
  if (name === "search_parameters") return member(value, "mode") === "off";
  if (name === "multi_agent") return member(value, "enabled") === false;
  if (name === "access_programs")
    return (isObject(value) || isEmptyList(value)) && Object.values(value).every((word) => word === "standard");
  // An empty object turns a search on; an empty list names nothing.
  return isEmptyList(value);
}

function isEmptyList(value: unknown): value is readonly never[] {
  return Array.isArray(value) && value.length === 0;
}

/** The refusal of an output limit under a name that the hold does not take into account. */
export function limitAlias(facts: ProtocolFacts, json: JsonObject): Refusal | undefined {
  const { meanings } = MEMBERS[facts.name];
  const param = Object.keys(json).find((name) => meanings.get(name) === "limit" && isGiven(json[name]));
  if (param === undefined) return undefined;
  const detail = `"${param}" is an output limit under another name; use "${facts.limitFields[0]}".`;
  return refusal("unsupported_parameter", { param, detail });
}
