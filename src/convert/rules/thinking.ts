/**
 * Thinking, effort and output limit for a messages upstream, which depend on each other (docs/translation-rules.md
 * rules 22 and 27).
 */

import { type Capabilities, EFFORTS, type Effort } from "../../values/catalog.ts";
import { type Refusal, refusal } from "../../values/errors.ts";
import { isObject, type JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { Permitted, RouteFacts } from "../exchange.ts";
import type { HubRequest, RequestedReasoning } from "../hub.ts";
import type { Losses } from "./losses.ts";

interface ThinkingPlan {
  readonly maxTokens: number;
  /** The `thinking` member; undefined: leave it out. */
  readonly thinking: JsonObject | undefined;
  /** `output_config.effort`. */
  readonly effort: Effort | undefined;
  /** Whether the request asks for thinking, which excludes most sampling members. */
  readonly active: boolean;
}

/** What in the conversation forbids a thinking budget. */
interface ThinkingObstacles {
  /** A tool must be used. */
  readonly forcedTool: boolean;
  /** The last assistant turn calls tools, but its thinking could not be restored. */
  readonly brokenLoop: boolean;
}

/** Decides the three members for a messages upstream. */
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
    const isAsked = wanted !== undefined || hub.reasoning.thinking !== undefined;
    if (isAsked && !hub.reasoning.off) losses.drop(hub.reasoning.param);
    if (hub.reasoning.summary !== undefined) losses.ignore("reasoning.summary");
    return idle;
  }
  if (hub.reasoning.off) return { ...idle, ...switchedOff(mode, route.capabilities.efforts) };
  if (mode === "budget") {
    const tokens = wantedBudget(hub.reasoning);
    if (tokens === undefined || obstacles.brokenLoop) return idle;
    const plan = obstacles.forcedTool ? idle : withBudget(tokens, maxTokens);
    if (budgetIsLost(hub.reasoning, tokens, plan)) losses.drop(hub.reasoning.param);
    return plan;
  }
  const effort = wanted === undefined ? undefined : nearestEffort(wanted, route.capabilities.efforts);
  if (effortIsLost(hub.reasoning, route.capabilities)) losses.drop(hub.reasoning.param);
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

/** A budget that leaves room for the answer, within the limit that is held. Without room there is no thinking. */
function withBudget(wantedTokens: number, maxTokens: number): ThinkingPlan {
  const budget = Math.min(wantedTokens, maxTokens - BUDGET_TOKENS_MIN);
  if (budget < BUDGET_TOKENS_MIN) return { maxTokens, thinking: undefined, effort: undefined, active: false };
  const thinking = { type: "enabled", budget_tokens: budget };
  return { maxTokens, thinking, effort: undefined, active: true };
}

/** Whether there is less thinking than the client asked for: none, fewer tokens than it named, or a lower effort. */
function budgetIsLost(requested: RequestedReasoning, wantedTokens: number, { thinking }: ThinkingPlan): boolean {
  const budgetTokens = Number(thinking?.budget_tokens ?? 0);
  if (budgetTokens === 0 || budgetTokens >= wantedTokens) return budgetTokens === 0;
  if (requested.effort === undefined) return requested.budgetTokens !== undefined;
  const got = wantedEffort({ ...requested, effort: undefined, budgetTokens });
  return got === undefined || EFFORTS.indexOf(got) < EFFORTS.indexOf(requested.effort);
}

/** Adaptive thinking is requested with an effort, or if the client would otherwise see none of it. */
function adaptive(hub: HubRequest, route: RouteFacts, effortGiven: boolean): JsonObject | undefined {
  const shown = hub.reasoning.summary !== undefined || route.capabilities.progressInThinking;
  if (shown) return { type: "adaptive", display: "summarized" };
  if (hub.reasoning.thinking !== undefined) return { type: "adaptive" };
  return effortGiven && route.capabilities.thinking !== "always" ? { type: "adaptive" } : undefined;
}

/* Thinking that the client switches off, and models that cannot (capability `thinking_off`). */

/**
 * The member with which a request switches thinking off; undefined if it does not. Chat servers have several: the
 * protocol's own `reasoning_effort` and those that vendors have added.
 */
export function offMember(client: Protocol, json: JsonObject): string | undefined {
  return SWITCHES[client](json).find(([, off]) => off)?.[0];
}

type Switches = readonly (readonly [member: string, off: boolean])[];

/** The types of messages `thinking` that switch it off. */
const OFF_TYPES: ReadonlySet<unknown> = new Set(["disabled", "between_tools"]);

const SWITCHES: Readonly<Record<Protocol, (json: JsonObject) => Switches>> = {
  chat(json) {
    const template = membersOf(json.chat_template_kwargs);
    const reasoning = membersOf(json.reasoning);
    return [
      ["enable_thinking", json.enable_thinking === false],
      ["chat_template_kwargs", template.enable_thinking === false || template.thinking === false],
      ["thinking", membersOf(json.thinking).type === "disabled"],
      ["reasoning", reasoning.effort === "none" || reasoning.enabled === false],
      ["reasoning_effort", json.reasoning_effort === "none"],
    ];
  },
  messages: (json) => [
    ["thinking", OFF_TYPES.has(membersOf(json.thinking).type)],
    ["output_config.effort", membersOf(json.output_config).effort === "none"],
  ],
  responses: (json) => [["reasoning.effort", membersOf(json.reasoning).effort === "none"]],
};

function membersOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/**
 * The refusal of switching thinking off for a model that cannot, if the operator configured refusal.
 * @param member result of `offMember`, or the member that the hub form names.
 */
export function refusedOff(member: string | undefined, route: RouteFacts): Refusal | undefined {
  if (member === undefined || route.capabilities.thinkingOff === "ignore" || hasSwitch(route)) return undefined;
  return refusal("unsupported_parameter", { param: member, detail: "Thinking cannot be switched off for this model." });
}

/**
 * Whether the model can switch thinking off (docs/translation-rules.md rule 27). Messages models differ in `thinking`;
 * the others have the effort `none`, or no switch.
 */
function hasSwitch({ protocol, capabilities }: RouteFacts): boolean {
  if (protocol === "messages") return capabilities.thinking !== "always";
  const hasMember = protocol === "chat" && capabilities.thinkingSwitch !== "reasoning_effort";
  return hasMember || capabilities.efforts.includes("none");
}

/* How hard the model is to think, in the form of each protocol (docs/translation-rules.md rule 27). */

type Strength = Exclude<Effort, "none">;

/** The thinking budget of each effort, in tokens. */
const BUDGET_TOKENS: Readonly<Record<Strength, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 10_240,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536,
};

/** The smallest thinking budget that messages takes. The same number of tokens is always left for the answer. */
export const BUDGET_TOKENS_MIN = 1024;

/** The budget that the request means, in tokens; undefined if the client left it open. */
function wantedBudget(requested: RequestedReasoning): number | undefined {
  if (requested.effort === undefined && requested.budgetTokens !== undefined) return requested.budgetTokens;
  const effort = effortFor(requested);
  return effort && BUDGET_TOKENS[effort];
}

/**
 * The effort that is sent for the one that was asked for: the same, else the highest below it, else the lowest.
 * Undefined if the upstream takes none.
 */
function nearestEffort(wanted: Strength, efforts: readonly Effort[]): Strength | undefined {
  const strengths = EFFORTS.filter((effort): effort is Strength => effort !== "none" && efforts.includes(effort));
  const below = strengths.filter((effort) => EFFORTS.indexOf(effort) <= EFFORTS.indexOf(wanted));
  return below.at(-1) ?? strengths[0];
}

/** The effort that switches reasoning off: `none`, else the lowest one; undefined if the upstream takes none. */
function offEffort(efforts: readonly Effort[]): Effort | undefined {
  return EFFORTS.find((effort) => efforts.includes(effort));
}

/** The effort that the request means; a messages budget is converted to one. Undefined if the client left it open. */
function wantedEffort(requested: RequestedReasoning): Strength | undefined {
  if (requested.effort !== undefined) return requested.effort;
  if (requested.budgetTokens === undefined) return undefined;
  if (requested.budgetTokens < 4096) return "low";
  if (requested.budgetTokens < 16_384) return "medium";
  return requested.budgetTokens < 32_768 ? "high" : "xhigh";
}

/** The same, for servers that may not think unless they get an effort: for a plain "on" it is `medium`. */
function effortFor(requested: RequestedReasoning): Strength | undefined {
  return wantedEffort(requested) ?? (requested.thinking === "enabled" ? "medium" : undefined);
}

/** The effort for a chat or responses upstream; undefined: send none. */
export function openaiEffort(requested: RequestedReasoning, capabilities: Capabilities): Effort | undefined {
  if (requested.off) return offEffort(capabilities.efforts);
  const wanted = effortFor(requested);
  return wanted === undefined ? undefined : nearestEffort(wanted, capabilities.efforts);
}

/** Whether the client asked for an effort that this upstream does not have, so that it gets another one or none. */
export function effortIsLost(requested: RequestedReasoning, capabilities: Capabilities): boolean {
  const wanted = capabilities.efforts.length > 0 ? wantedEffort(requested) : effortFor(requested);
  return wanted !== undefined && !requested.off && nearestEffort(wanted, capabilities.efforts) !== wanted;
}
