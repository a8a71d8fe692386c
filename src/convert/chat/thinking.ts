/** The members that tell a chat server whether to think, and how hard. */

import type { Capabilities, Effort } from "../../values/catalog.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { RequestedReasoning } from "../hub.ts";
import { openaiEffort } from "../rules/thinking.ts";

/**
 * The members that tell a chat server whether to think, and how hard. The switch differs between vendors
 * (docs/translation-rules.md rule 27); in addition to another switch, the effort only says how hard. No members if the
 * client left it open.
 * @param thinkingMost the most thinking tokens that may be requested; undefined: unlimited.
 */
export function chatThinking(
  requested: RequestedReasoning,
  capabilities: Capabilities,
  thinkingMost?: number,
): JsonObject {
  const effort = openaiEffort(requested, capabilities);
  const { thinkingSwitch } = capabilities;
  if (thinkingSwitch === "reasoning_effort") return { reasoning_effort: effort };
  const on = !requested.off;
  const isAsked =
    requested.effort !== undefined || requested.budgetTokens !== undefined || requested.thinking !== undefined;
  if (on && !isAsked) return {};
  if (thinkingSwitch === "reasoning")
    return { reasoning: on ? routerReasoning(requested, effort, thinkingMost) : { effort: "none" } };
  const switched = {
    thinking: { thinking: { type: on ? "enabled" : "disabled" } },
    enable_thinking: { enable_thinking: on },
    // Chat templates read either name and ignore names that they do not know.
    chat_template_kwargs: { chat_template_kwargs: { enable_thinking: on, thinking: on } },
  };
  return { ...switched[thinkingSwitch], reasoning_effort: on ? effort : undefined };
}

/** OpenRouter's member takes one of: a budget, an effort, a plain switch. */
function routerReasoning(
  { budgetTokens }: RequestedReasoning,
  effort: Effort | undefined,
  most = Number.POSITIVE_INFINITY,
): JsonObject {
  if (budgetTokens !== undefined) return { max_tokens: Math.min(budgetTokens, most) };
  return effort === undefined ? { enabled: true } : { effort };
}
