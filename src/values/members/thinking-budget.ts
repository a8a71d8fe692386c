/**
 * How much thinking a body asks for in addition to its output limit: some servers apply the limit only to the answer.
 */
import { type JsonObject, objectOf } from "../json-object.ts";

/** Member names of common chat servers (docs/members.md); messages servers keep a budget below the limit. */
const TOP = ["thinking_budget", "thinking_token_budget", "thinking_budget_tokens", "reasoning_budget"] as const;
const NESTED = [
  ["reasoning", "max_tokens"],
  ["thinking", "budget_tokens"],
  ["chat_template_kwargs", "thinking_budget"],
] as const;

interface ThinkingBudget {
  /** The dotted path of the member that names it. */
  readonly param: string;
  /** Tokens, whole and above 0; a number written as a string counts as well, in any form that a server might read. */
  readonly tokens: number;
}

/** Most bodies have none of these members: 0.03 us, where going through the lists takes 0.15. */
function mayHaveBudget(json: Readonly<JsonObject>): boolean {
  const { thinking_budget, thinking_token_budget, thinking_budget_tokens, reasoning_budget } = json;
  const { reasoning, thinking, chat_template_kwargs } = json;
  const top = thinking_budget ?? thinking_token_budget ?? thinking_budget_tokens ?? reasoning_budget;
  return (top ?? reasoning ?? thinking ?? chat_template_kwargs ?? null) !== null;
}

/** The largest budget in the body; undefined if there is none. */
export function thinkingBudgetOf(json: Readonly<JsonObject>): ThinkingBudget | undefined {
  if (!mayHaveBudget(json)) return undefined;
  let largest: ThinkingBudget | undefined;
  const see = (tokens: number, outer: string, inner?: string) => {
    if (tokens <= (largest?.tokens ?? 0)) return;
    largest = { param: inner === undefined ? outer : `${outer}.${inner}`, tokens };
  };
  for (const name of TOP) see(tokensOf(json[name]), name);
  for (const [outer, inner] of NESTED) see(tokensOf(objectOf(json[outer])?.[inner]), outer, inner);
  return largest;
}

/**
 * The top-level members with a budget above `most` tokens, lowered to it, as raw JSON by name; undefined if the body
 * has no budget.
 */
export function loweredBudgets(json: Readonly<JsonObject>, most: number): Record<string, string> | undefined {
  if (!mayHaveBudget(json)) return undefined;
  const set: Record<string, string> = {};
  for (const name of TOP) if (tokensOf(json[name]) > most) set[name] = JSON.stringify(alike(json[name], most));
  for (const [outer, inner] of NESTED) {
    const object = objectOf(json[outer]);
    if (!object || tokensOf(object[inner]) <= most) continue;
    set[outer] = JSON.stringify({ ...object, [inner]: alike(object[inner], most) });
  }
  return set;
}

/** Python reads `1_000` and the digits of every script as numbers, so text with a digit that is no number has no bound here. */
const DIGIT = /\p{Nd}/u;

function tokensOf(value: unknown): number {
  if (typeof value !== "number" && typeof value !== "string") return 0;
  const tokens = Math.ceil(Number(value));
  if (Number.isNaN(tokens)) return DIGIT.test(String(value)) ? Number.MAX_SAFE_INTEGER : 0;
  return tokens > 0 ? Math.min(tokens, Number.MAX_SAFE_INTEGER) : 0;
}

/** A number if the client wrote a number, a string if it wrote a string. */
function alike(value: unknown, tokens: number): number | string {
  return typeof value === "string" ? String(tokens) : tokens;
}
