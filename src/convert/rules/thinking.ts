/**
 * Thinking, effort and the output limit of a messages upstream, which hang together (docs/translation-rules.md rules 22
 * and 27).
 */

import { type Capabilities, EFFORTS, type Effort } from "../../values/catalog.ts";
import { type Refusal, refusal } from "../../values/errors.ts";
import { isObject, type JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { Permitted, RouteFacts } from "../exchange.ts";
import type { HubRequest, ReasoningWish } from "../hub.ts";
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

/** A budget that leaves room for the answer, within the limit that is held; without room there is no thinking. */
function withBudget(wantedTokens: number, maxTokens: number): ThinkingPlan {
  const budget = Math.min(wantedTokens, maxTokens - BUDGET_TOKENS_MIN);
  if (budget < BUDGET_TOKENS_MIN) return { maxTokens, thinking: undefined, effort: undefined, active: false };
  const thinking = { type: "enabled", budget_tokens: budget };
  return { maxTokens, thinking, effort: undefined, active: true };
}

/** Whether there is less thinking than was asked for: none, fewer tokens than the client named, or a lower effort. */
function budgetIsLost(wish: ReasoningWish, wantedTokens: number, { thinking }: ThinkingPlan): boolean {
  const budgetTokens = Number(thinking?.budget_tokens ?? 0);
  if (budgetTokens === 0 || budgetTokens >= wantedTokens) return budgetTokens === 0;
  if (wish.effort === undefined) return wish.budgetTokens !== undefined;
  const got = wantedEffort({ ...wish, effort: undefined, budgetTokens });
  return got === undefined || EFFORTS.indexOf(got) < EFFORTS.indexOf(wish.effort);
}

/** Adaptive thinking is asked for with an effort, or where the client would otherwise see nothing of it. */
function adaptive(hub: HubRequest, route: RouteFacts, effortGiven: boolean): JsonObject | undefined {
  const shown = hub.reasoning.summary !== undefined || route.capabilities.progressInThinking;
  if (shown) return { type: "adaptive", display: "summarized" };
  if (hub.reasoning.thinking !== undefined) return { type: "adaptive" };
  return effortGiven && route.capabilities.thinking !== "always" ? { type: "adaptive" } : undefined;
}

/* Thinking that the client switches off, and models that have no such switch (capability `thinking_off`). */

/**
 * The member with which a request switches thinking off; undefined when it does not.
 * Chat servers know several: the protocol's own `reasoning_effort` and what vendors have added beside it.
 */
export function offMember(client: Protocol, json: JsonObject): string | undefined {
  return SWITCHES[client](json).find(([, off]) => off)?.[0];
}

type Switches = readonly (readonly [member: string, off: boolean])[];

/** Types of messages' `thinking` that say no. */
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
 * The refusal of a switch that this route's model does not have, where the operator wants it refused.
 * @param member what `offMember` found, or what the hub's wish names.
 */
export function refusedOff(member: string | undefined, route: RouteFacts): Refusal | undefined {
  if (member === undefined || route.capabilities.thinkingOff === "ignore" || hasSwitch(route)) return undefined;
  return refusal("unsupported_parameter", { param: member, detail: "Thinking cannot be switched off for this model." });
}

/**
 * docs/translation-rules.md rule 27: messages models differ in `thinking`; the others have the effort `none` or no
 * switch.
 */
function hasSwitch({ protocol, capabilities }: RouteFacts): boolean {
  if (protocol === "messages") return capabilities.thinking !== "always";
  const hasMember = protocol === "chat" && capabilities.thinkingSwitch !== "reasoning_effort";
  return hasMember || capabilities.efforts.includes("none");
}

/* How hard the model shall think, in each dialect (docs/translation-rules.md rule 27). */

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

/** The smallest thinking budget that messages takes; so much stays for the answer beside one, too. */
export const BUDGET_TOKENS_MIN = 1024;

/** The budget that a wish amounts to, in tokens; undefined when the client left it open. */
function wantedBudget(wish: ReasoningWish): number | undefined {
  if (wish.effort === undefined && wish.budgetTokens !== undefined) return wish.budgetTokens;
  const effort = effortFor(wish);
  return effort && BUDGET_TOKENS[effort];
}

/**
 * The effort that the upstream takes for the one that was asked for: the same, else the highest below, else the lowest
 * there is. Undefined when the upstream takes none at all.
 */
function nearestEffort(wanted: Strength, efforts: readonly Effort[]): Strength | undefined {
  const strengths = EFFORTS.filter((effort): effort is Strength => effort !== "none" && efforts.includes(effort));
  const below = strengths.filter((effort) => EFFORTS.indexOf(effort) <= EFFORTS.indexOf(wanted));
  return below.at(-1) ?? strengths[0];
}

/** The word that switches reasoning off: `none`, else the lowest effort; undefined when there is no such parameter. */
function offEffort(efforts: readonly Effort[]): Effort | undefined {
  return EFFORTS.find((effort) => efforts.includes(effort));
}

/** The effort that a wish amounts to, a messages budget read as one; undefined when the client left it open. */
function wantedEffort(wish: ReasoningWish): Strength | undefined {
  if (wish.effort !== undefined) return wish.effort;
  if (wish.budgetTokens === undefined) return undefined;
  if (wish.budgetTokens < 4096) return "low";
  if (wish.budgetTokens < 16_384) return "medium";
  return wish.budgetTokens < 32_768 ? "high" : "xhigh";
}

/** The same for servers that may not think unless they are told how hard: a bare switch is the middle. */
function effortFor(wish: ReasoningWish): Strength | undefined {
  return wantedEffort(wish) ?? (wish.thinking === "enabled" ? "medium" : undefined);
}

/** The effort word for a chat or responses upstream; undefined: send none. */
export function openaiEffort(wish: ReasoningWish, capabilities: Capabilities): Effort | undefined {
  if (wish.off) return offEffort(capabilities.efforts);
  const wanted = effortFor(wish);
  return wanted === undefined ? undefined : nearestEffort(wanted, capabilities.efforts);
}

/** Whether the client asked for an effort that this upstream has no word for: it gets another one, or none. */
export function effortIsLost(wish: ReasoningWish, capabilities: Capabilities): boolean {
  const wanted = capabilities.efforts.length > 0 ? wantedEffort(wish) : effortFor(wish);
  return wanted !== undefined && !wish.off && nearestEffort(wanted, capabilities.efforts) !== wanted;
}
