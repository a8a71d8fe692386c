/** How much thinking a body asks for beside its output limit: some servers count the limit for the answer alone. */
import type { JsonObject } from "../../values/json-object.ts";

/** The words of common chat servers (docs/members.md); messages servers keep a budget below the limit. */
const BUDGETS = ["thinking_budget", "thinking_token_budget", "thinking_budget_tokens", "reasoning_budget"] as const;
const NESTED = [
  ["reasoning", "max_tokens"],
  ["thinking", "budget_tokens"],
  ["chat_template_kwargs", "thinking_budget"],
] as const;

/** @returns the largest budget in tokens that the body names, whole and at least 0; a number as text counts as well. */
export function thinkingBudgetOf(json: JsonObject): number {
  const named = [
    ...BUDGETS.map((name) => json[name]),
    ...NESTED.map(([outer, inner]) => {
      const object = json[outer];
      return typeof object === "object" && object !== null ? (object as JsonObject)[inner] : undefined;
    }),
  ];
  let most = 0;
  for (const value of named) {
    const tokens = typeof value === "number" || typeof value === "string" ? Math.ceil(Number(value)) : 0;
    if (tokens > most) most = Math.min(tokens, Number.MAX_SAFE_INTEGER);
  }
  return most;
}
