/**
 * Thinking, effort and the output limit of a messages upstream, which hang together (docs/translation-rules.md rules 22
 * and 27).
 */
import type { Effort } from "../../values/catalog.ts";
import type { JsonObject } from "../../values/json-object.ts";
import type { Permitted, RouteFacts } from "../exchange.ts";
import type { HubRequest } from "../hub.ts";
import { BUDGET_TOKENS_MIN, budgetOf, nearestEffort, wantedEffort } from "./effort.ts";
import type { Losses } from "./losses.ts";

interface ThinkingPlan {
  readonly maxTokens: number;
  /** The `thinking` member; undefined: leave it out. */
  readonly thinking: JsonObject | undefined;
  /** `output_config.effort`. */
  readonly effort: Effort | undefined;
  /** Whether the request asks for thinking, which most sampling members exclude. */
  readonly active: boolean;
}

/** What of the conversation forbids a thinking budget. */
interface ThinkingObstacles {
  /** A tool must be used. */
  readonly forcedTool: boolean;
  /** The last assistant turn calls tools, but its thinking could not be restored. */
  readonly brokenLoop: boolean;
}

/** Settles the three members for a messages upstream. */
export function planThinking(
  hub: HubRequest,
  route: RouteFacts,
  permitted: Permitted,
  obstacles: ThinkingObstacles,
  losses: Losses,
): ThinkingPlan {
  const own = permitted.outputLimit ?? hub.outputLimit?.tokens;
  const maxTokens = Math.min(own ?? route.defaultOutputTokens, route.maxOutputTokens);
  const idle: ThinkingPlan = { maxTokens, thinking: undefined, effort: undefined, active: false };
  const mode = route.capabilities.thinking;
  const wanted = wantedEffort(hub.reasoning);
  if (mode === "none") {
    if (wanted !== undefined && !hub.reasoning.off) losses.drop(hub.reasoning.param);
    return idle;
  }
  if (hub.reasoning.off) return { ...idle, ...switchedOff(mode, route.capabilities.efforts) };
  if (mode === "budget") {
    if (wanted === undefined || obstacles.forcedTool || obstacles.brokenLoop) return idle;
    return withBudget(budgetOf(wanted), maxTokens);
  }
  const effort = wanted === undefined ? undefined : nearestEffort(wanted, route.capabilities.efforts);
  const thinking = mode === "both" && obstacles.forcedTool ? undefined : adaptive(hub, route, wanted !== undefined);
  return { maxTokens, thinking, effort, active: thinking !== undefined || mode === "always" };
}

function switchedOff(
  mode: "adaptive" | "always" | "between" | "both" | "budget",
  efforts: readonly Effort[],
): Pick<ThinkingPlan, "thinking" | "effort" | "active"> {
  if (mode === "budget") return { thinking: undefined, effort: undefined, active: false };
  if (mode === "always") return { thinking: undefined, effort: nearestEffort("low", efforts), active: true };
  const type = mode === "between" ? "between_tools" : "disabled";
  return { thinking: { type }, effort: undefined, active: false };
}

/** A budget that leaves room for the answer, within the limit that is held; without room there is no thinking. */
function withBudget(wantedTokens: number, maxTokens: number): ThinkingPlan {
  const budget = Math.min(wantedTokens, maxTokens - BUDGET_TOKENS_MIN);
  if (budget < BUDGET_TOKENS_MIN) return { maxTokens, thinking: undefined, effort: undefined, active: false };
  const thinking = { type: "enabled", budget_tokens: budget };
  return { maxTokens, thinking, effort: undefined, active: true };
}

/** Adaptive thinking is asked for with an effort, or where the client would otherwise see nothing of it. */
function adaptive(hub: HubRequest, route: RouteFacts, effortGiven: boolean): JsonObject | undefined {
  const shown = hub.reasoning.summary !== undefined || route.capabilities.progressInThinking;
  if (shown) return { type: "adaptive", display: "summarized" };
  const display = hub.client === "messages" ? hub.reasoning.display : undefined;
  if (hub.reasoning.thinking !== undefined) return { type: "adaptive", display };
  return effortGiven && route.capabilities.thinking !== "always" ? { type: "adaptive" } : undefined;
}
