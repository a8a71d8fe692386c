/**
 * Decides which tools the upstream is offered and which it must use (docs/translation-rules.md rule 33): sorts out
 * hosted tools, selects allowed ones, and checks the tool choice against the rest.
 */
import { isDeepStrictEqual } from "node:util";
import type { Capabilities } from "../../values/catalog.ts";
import { HOSTED_TOOL_REMEDY } from "../../values/members/hosted-tools.ts";
import type { CustomTool, FunctionTool, HostedTool, HubRequest, ToolChoice, ToolRef, TypedTool } from "../hub.ts";
import type { Losses } from "./losses.ts";
import { refuse } from "./read.ts";
import type { NameBook } from "./tool-names.ts";

type UsableTool = FunctionTool | CustomTool | TypedTool;

export interface OfferedTool {
  readonly definition: UsableTool;
  /** The name that the upstream gets. */
  readonly name: string;
}

export interface ToolOffer {
  readonly tools: readonly OfferedTool[];
  /** Hosted tools that the target runs itself. */
  readonly hosted: readonly HostedTool[];
  /** Undefined: send none. Never `hosted`. */
  readonly choice: Exclude<ToolChoice, { mode: "hosted" }> | undefined;
}

/** What the target can do beyond functions. */
interface OfferTarget {
  readonly capabilities: Capabilities;
  /** Whether the target runs this hosted tool itself. */
  carriesHosted(tool: HostedTool): boolean;
  /** Whether the target has a form for a choice among named tools; otherwise the list of tools is filtered. */
  readonly allowedNatively: boolean;
}

/** Sorts a request's tools for a target and enters their names in the book. */
export function offerTools(hub: HubRequest, target: OfferTarget, names: NameBook, losses: Losses): ToolOffer {
  const hosted = hub.tools.filter((tool): tool is HostedTool => tool.type === "hosted");
  const usable = hub.tools.filter((tool): tool is UsableTool => tool.type !== "hosted");
  const carried = hosted.filter((tool) => target.carriesHosted(tool));
  const left = hosted.filter((tool) => !target.carriesHosted(tool));
  leaveHosted(left, hub.toolChoice, usable.length + carried.length, losses);
  const defined = defineAll(usable, names, losses);
  const offered = pickAllowed(defined, hub.toolChoice, target, names);
  const choice = settleChoice(hub.toolChoice, offered, carried.length, target, names);
  return { tools: offered, hosted: carried, choice };
}

/** Each tool once, under its upstream name. */
function defineAll(usable: readonly UsableTool[], names: NameBook, losses: Losses): readonly OfferedTool[] {
  const defined = new Map<string, OfferedTool>();
  for (const definition of usable) {
    const name = names.define(definition.tool);
    if (name !== undefined) defined.set(name, { definition, name });
    else leaveDoubled(definition, defined.get(names.nameOf(definition.tool)), losses);
  }
  return [...defined.values()];
}

/**
 * Handles a second tool of the same name. An equal definition is skipped. A different one is refused, as servers do
 * (`Tool names must be unique`, github.com/anthropics/claude-code/issues/10687). If an item of the input brought it
 * along, it is dropped and named instead, because the conversation could never continue otherwise.
 */
function leaveDoubled(definition: UsableTool, first: OfferedTool | undefined, losses: Losses): void {
  if (first && isDeepStrictEqual({ ...first.definition, param: "" }, { ...definition, param: "" })) return;
  if (definition.param.startsWith("input[")) {
    losses.drop("input.tools", definition.param);
    return;
  }
  const param = definition.type === "typed" ? definition.param : `${definition.param}.name`;
  refuse("wrong_type", param, "Two tools have the same name.");
}

function leaveHosted(
  left: readonly HostedTool[],
  choice: ToolChoice | undefined,
  others: number,
  losses: Losses,
): void {
  for (const tool of left) {
    if (others === 0 || mustUse(choice, tool) || tool.demanded) {
      // A member that asks for a tool is written by the user; tools are also added by clients.
      const remedy = tool.demanded ? undefined : HOSTED_TOOL_REMEDY;
      refuse(
        "unsupported_parameter",
        tool.param,
        "The vendor's servers run this tool; it is not offered here.",
        remedy,
      );
    }
    losses.drop(`tools.${familyOf(tool.hosted)}`, tool.param);
  }
  if (choice?.mode === "hosted") {
    refuse("unsupported_parameter", "tool_choice", "The tool that must be used is not offered here.");
  }
}

/** Whether the choice is this hosted tool, by its type, or by its name as in messages. */
function mustUse(choice: ToolChoice | undefined, tool: HostedTool): boolean {
  if (choice?.mode === "named") return tool.native.name === choice.tool.name;
  return choice?.mode === "hosted" && sameHosted(choice.hosted, tool.hosted);
}

/** Prefixes of hosted tool types. Losses are named after them, so that dated types do not multiply the names. */
const HOSTED_FAMILIES = [
  "web_search",
  "web_fetch",
  "file_search",
  "code_interpreter",
  "code_execution",
  "image_generation",
  "computer",
  "browser",
  "mcp",
  "tool_search",
  "programmatic_tool_calling",
] as const;

/** The family that names the loss of a hosted tool. */
export function familyOf(hosted: string): string {
  return HOSTED_FAMILIES.find((family) => hosted.startsWith(family)) ?? "hosted";
}

function sameHosted(one: string, other: string): boolean {
  return one === other || (familyOf(one) === familyOf(other) && familyOf(one) !== "hosted");
}

function pickAllowed(
  defined: readonly OfferedTool[],
  choice: ToolChoice | undefined,
  target: OfferTarget,
  names: NameBook,
): readonly OfferedTool[] {
  if (choice?.mode !== "allowed" || target.allowedNatively) return defined;
  const allowed = new Set(choice.tools.map((tool) => names.nameOf(tool)));
  const picked = defined.filter((tool) => allowed.has(tool.name));
  if (picked.length === 0) refuse("untranslatable", "tool_choice", "None of the allowed tools is among the tools.");
  return picked;
}

function settleChoice(
  choice: ToolChoice | undefined,
  offered: readonly OfferedTool[],
  hosted: number,
  target: OfferTarget,
  names: NameBook,
): ToolOffer["choice"] {
  if (choice === undefined || choice.mode === "hosted") return undefined;
  const settled: Exclude<ToolChoice, { mode: "hosted" }> =
    choice.mode === "allowed" && !target.allowedNatively ? { mode: choice.required ? "required" : "auto" } : choice;
  const forced = isForced(settled);
  if (offered.length + hosted === 0) {
    if (forced) refuse("untranslatable", "tool_choice", "A tool must be used but none is offered.");
    return undefined;
  }
  if (forced && !target.capabilities.forcedToolChoice) {
    refuse("unsupported_parameter", "tool_choice", "This model cannot be forced to use a tool.");
  }
  if (settled.mode === "named") proveOffered(settled.tool, offered, names);
  return settled;
}

function proveOffered(tool: ToolRef, offered: readonly OfferedTool[], names: NameBook): void {
  const name = names.nameOf(tool);
  if (!offered.some((one) => one.name === name)) {
    refuse("untranslatable", "tool_choice", "The tool that must be used is not among the tools.");
  }
}

/** Whether a choice forces the model to use a tool. */
export function isForced(choice: ToolOffer["choice"]): boolean {
  if (choice === undefined) return false;
  return choice.mode === "required" || choice.mode === "named" || (choice.mode === "allowed" && choice.required);
}
