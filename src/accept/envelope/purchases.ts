/** What a request asks for beside tokens: extras, other models (ARCHITECTURE.md promise 14). */

import { type Refusal, refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { MEMBERS } from "../../values/members.ts";
import type { Protocol, ProtocolFacts } from "../../values/protocol.ts";
import { member } from "./conversation.ts";

/** The members that ask for an extra, in the order of the body. */
export function optionsOf(protocol: Protocol, json: JsonObject): readonly string[] {
  const { standings } = MEMBERS[protocol];
  return Object.keys(json).filter((name) => standings.get(name) === "option" && !isOff(name, json[name]));
}

/** What says "no" in each: nothing, false, an empty list or object, and the numbers and words that change nothing. */
function isOff(name: string, value: unknown): boolean {
  if (isAbsent(value) || value === false) return true;
  if (name === "best_of" || name === "n" || name === "num_beams") return value === 1;
  if (name === "priority") return value === 0;
  if (name === "search_parameters") return member(value, "mode") === "off";
  if (name === "access_programs") return Object.values(value as JsonObject).every((word) => word === "standard");
  // An empty object switches a search on; an empty list names nothing.
  return Array.isArray(value) && value.length === 0;
}

/** An output limit under a name that the hold does not follow. */
export function limitAlias(facts: ProtocolFacts, json: JsonObject): Refusal | undefined {
  const { standings } = MEMBERS[facts.name];
  const param = Object.keys(json).find((name) => standings.get(name) === "limit" && !isAbsent(json[name]));
  if (param === undefined) return undefined;
  const detail = `"${param}" is an output limit under another name; use "${facts.limitFields[0]}".`;
  return refusal("unsupported_parameter", { param, detail });
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

/* How much thinking a body asks for beside its output limit: some servers count the limit for the answer alone. */

/** The words of common chat servers (docs/members.md); messages servers keep a budget below the limit. */
const BUDGETS = ["thinking_budget", "thinking_token_budget", "thinking_budget_tokens", "reasoning_budget"] as const;
const NESTED = [
  ["reasoning", "max_tokens"],
  ["thinking", "budget_tokens"],
  ["chat_template_kwargs", "thinking_budget"],
] as const;

/** @returns the largest budget in tokens that the body names, whole and at least 0; a number as text counts as well. */
export function thinkingBudgetOf(json: JsonObject): number {
  let most = 0;
  for (const name of BUDGETS) most = Math.max(most, budgetOf(json[name]));
  for (const [outer, inner] of NESTED) {
    const object = json[outer];
    if (typeof object === "object" && object !== null) most = Math.max(most, budgetOf((object as JsonObject)[inner]));
  }
  return most;
}

function budgetOf(value: unknown): number {
  if (typeof value !== "number" && typeof value !== "string") return 0;
  const tokens = Math.ceil(Number(value));
  return tokens > 0 ? Math.min(tokens, Number.MAX_SAFE_INTEGER) : 0;
}
