/**
 * How chat clients ask a model to think: in the protocol's own member and in those that server vendors have added
 * (docs/translation-rules.md rule 27).
 */
import { EFFORTS, type Effort } from "../../../values/catalog.ts";
import { isGiven, type JsonObject, objectOf } from "../../../values/json-object.ts";
import type { RequestedReasoning } from "../../hub.ts";
import { requestedEffort } from "../../rules/options.ts";

/** What one member asks for; undefined `on`: an unknown value. */
interface Claim {
  readonly param: string;
  readonly on: boolean | undefined;
  readonly effort?: Exclude<Effort, "none"> | undefined;
  readonly budgetTokens?: number | undefined;
}

/** What is requested, and the members that contradict it. */
interface ChatReasoning {
  readonly requested: RequestedReasoning;
  readonly unheeded: readonly string[];
}

/** If members contradict each other, the first one in the order of `claimsOf` is followed. */
export function decodeReasoning(json: JsonObject): ChatReasoning {
  const claims = claimsOf(json);
  const first = claims.find(({ on }) => on !== undefined);
  const followed = claims.filter(({ on }) => on !== undefined && on === first?.on);
  const measure = followed.find(({ effort, budgetTokens }) => effort !== undefined || budgetTokens !== undefined);
  const isHeeded = (claim: Claim) => followed.includes(claim) && (isBare(claim) || isSameMeasure(claim, measure));
  const off = first?.on === false;
  return {
    requested: {
      effort: measure?.effort,
      off,
      budgetTokens: measure?.budgetTokens,
      thinking: first?.on && measure === undefined ? "enabled" : undefined,
      display: undefined,
      summary: undefined,
      // A refusal names the top-level member that the client wrote.
      param: (off ? first.param.split(".")[0] : (measure ?? first)?.param) ?? "reasoning_effort",
    },
    unheeded: claims.filter((claim) => !isHeeded(claim)).map(({ param }) => param),
  };
}

/** Whether a claim only switches thinking on or off. */
function isBare({ effort, budgetTokens }: Claim): boolean {
  return effort === undefined && budgetTokens === undefined;
}

function isSameMeasure({ effort, budgetTokens }: Claim, other: Claim | undefined): boolean {
  return effort === other?.effort && budgetTokens === other?.budgetTokens;
}

/**
 * All claims in order of precedence: switches of Qwen and vLLM, that of DeepSeek, Z.ai and Kimi, OpenRouter's, the
 * protocol's own.
 */
function claimsOf(json: JsonObject): readonly Claim[] {
  const template = objectOf(json.chat_template_kwargs);
  const thinking = objectOf(json.thinking);
  const reasoning = objectOf(json.reasoning);
  const claims = [
    ...["chat_template_kwargs", "thinking", "reasoning"].map((param) => noObject(param, json[param])),
    switchOf("enable_thinking", json.enable_thinking),
    budgetOf("thinking_budget", json.thinking_budget),
    switchOf("chat_template_kwargs.enable_thinking", template?.enable_thinking),
    switchOf("chat_template_kwargs.thinking", template?.thinking),
    budgetOf("chat_template_kwargs.thinking_budget", template?.thinking_budget),
    typeOf("thinking.type", thinking?.type),
    budgetOf("thinking.budget_tokens", thinking?.budget_tokens),
    switchOf("reasoning.enabled", reasoning?.enabled),
    effortOf("reasoning.effort", reasoning?.effort),
    budgetOf("reasoning.max_tokens", reasoning?.max_tokens),
    ownEffort(json.reasoning_effort),
  ];
  return claims.filter((claim) => claim !== undefined);
}

/** A member that should be an object and is not. */
function noObject(param: string, value: unknown): Claim | undefined {
  return !isGiven(value) || objectOf(value) ? undefined : { param, on: undefined };
}

function switchOf(param: string, value: unknown): Claim | undefined {
  if (!isGiven(value)) return undefined;
  return { param, on: typeof value === "boolean" ? value : undefined };
}

const TYPES: ReadonlyMap<unknown, boolean> = new Map([
  ["enabled", true],
  ["adaptive", true],
  ["disabled", false],
]);

function typeOf(param: string, value: unknown): Claim | undefined {
  return isGiven(value) ? { param, on: TYPES.get(value) } : undefined;
}

/** 0 switches off. A negative budget switches on; some servers read it as "as much as is needed". */
function budgetOf(param: string, value: unknown): Claim | undefined {
  if (!isGiven(value)) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return { param, on: undefined };
  return { param, on: value !== 0, budgetTokens: value > 0 ? value : undefined };
}

function effortOf(param: string, value: unknown): Claim | undefined {
  if (!isGiven(value)) return undefined;
  const word = EFFORTS.find((effort) => effort === value);
  if (word === undefined) return { param, on: undefined };
  return word === "none" ? { param, on: false } : { param, on: true, effort: word };
}

/** The protocol's own member has a closed set of values; others are refused. */
function ownEffort(value: unknown): Claim | undefined {
  const param = "reasoning_effort";
  const { effort, off } = requestedEffort(value, param);
  return effort === undefined && !off ? undefined : { param, on: !off, effort };
}
