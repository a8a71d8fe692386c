/** How a chat server is told whether to think, and how hard. */

import type { Capabilities, Effort } from "../../values/catalog.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { ReasoningWish } from "../hub.ts";
import { openaiEffort } from "../rules/thinking.ts";

/**
 * The members that tell a chat server whether to think, and how hard: which one is the switch differs from maker to maker
 * (docs/translation-rules.md rule 27), and beside another switch the effort says no more than how hard. Nothing where the client left it open.
 * @param thinkingMost the most tokens of thinking that may be asked for; undefined: any number.
 */
export function chatThinking(wish: ReasoningWish, capabilities: Capabilities, thinkingMost?: number): JsonObject {
  const effort = openaiEffort(wish, capabilities);
  const { thinkingSwitch } = capabilities;
  if (thinkingSwitch === "reasoning_effort") return { reasoning_effort: effort };
  const on = !wish.off;
  const isAsked = wish.effort !== undefined || wish.budgetTokens !== undefined || wish.thinking !== undefined;
  if (on && !isAsked) return {};
  if (thinkingSwitch === "reasoning")
    return { reasoning: on ? routerReasoning(wish, effort, thinkingMost) : { effort: "none" } };
  const switched = {
    thinking: { thinking: { type: on ? "enabled" : "disabled" } },
    enable_thinking: { enable_thinking: on },
    // Templates of conversations read either name, and none that they do not know.
    chat_template_kwargs: { chat_template_kwargs: { enable_thinking: on, thinking: on } },
  };
  return { ...switched[thinkingSwitch], reasoning_effort: on ? effort : undefined };
}

/** OpenRouter's member takes one of a budget, an effort and a bare switch. */
function routerReasoning(
  { budgetTokens }: ReasoningWish,
  effort: Effort | undefined,
  most = Number.POSITIVE_INFINITY,
): JsonObject {
  if (budgetTokens !== undefined) return { max_tokens: Math.min(budgetTokens, most) };
  return effort === undefined ? { enabled: true } : { effort };
}
