/** What a request asks for in addition to tokens, and whether it has a price: hosted tools, extras, a tier. */
import type { Model, Route } from "../values/catalog.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { HOSTED_TOOL_REMEDY } from "../values/members/hosted-tools.ts";
import type { Price } from "../values/price.ts";
import type { Protocol } from "../values/protocol.ts";
import { optionPriceName, reachesUpstream, toolPriceName } from "../values/tokens/tool-calls.ts";

interface Extras {
  /** Price names of the requested hosted tools. */
  readonly tools: readonly string[];
  /** Price names of the requested extras; each is charged once. */
  readonly options: readonly string[];
}

const NO_EXTRAS: Extras = { tools: [], options: [] };

/**
 * A member that asks for an extra counts as a hosted tool, whose calls the server counts, unless it has a price per
 * request.
 */
export function extrasOf({ hostedTools, options }: Envelope, { tools, extras }: Price): Extras {
  if (hostedTools.length === 0 && options.length === 0) return NO_EXTRAS;
  const isExtra = (option: string) => extras?.has(option) === true;
  const switched = options.filter((option) => !isExtra(option)).map((option) => optionPriceName(option, tools));
  const named = hostedTools.map(toolPriceName).filter((name) => tools.has(name));
  return {
    tools: [...new Set([...named, ...switched.filter((name) => tools.has(name))])],
    options: options.filter(isExtra),
  };
}

/**
 * If every route to the model is a translation that leaves hosted tools out, they cost nothing; convert decides this.
 */
function buysTools(route: Route, client: Protocol): boolean {
  return route.protocol === client || route.capabilities.openaiNative;
}

/** Types of the offered hosted tools that have no price. */
export function unpricedTools({ hostedTools }: Envelope, { tools }: Price): readonly string[] {
  return hostedTools.length === 0 ? hostedTools : hostedTools.filter((type) => !tools.has(toolPriceName(type)));
}

/**
 * A hosted tool without a price that cannot be left out: either it is required, or no other tool is offered, so the
 * answer would be a different one without it.
 */
function neededTool(facts: Envelope, price: Price): string | undefined {
  const unpriced = unpricedTools(facts, price);
  if (!facts.hasOwnTools && unpriced.length === facts.hostedTools.length) return unpriced[0];
  const demanded = new Set(facts.demandedTools.map(toolPriceName));
  return unpriced.find((type) => demanded.has(toolPriceName(type)));
}

/** Refuses a request that asks for something without a price (ARCHITECTURE.md, promise 14). */
export function findUnpriced(facts: Envelope, model: Model): Refusal | undefined {
  // Most requests ask for nothing that needs a price of its own.
  if (facts.serviceTier === undefined && facts.options.length === 0 && facts.hostedTools.length === 0) return undefined;
  const { price, routes } = model;
  const refuse = (param: string, what: string, remedy?: string) =>
    refusal("unsupported_parameter", {
      model: facts.model,
      param,
      detail: `${what} is not offered for this model.`,
      remedy,
    });
  if (facts.serviceTier !== undefined && !price.tiers.has(facts.serviceTier)) {
    return refuse(facts.tierParam ?? "service_tier", `The tier "${facts.serviceTier}"`);
  }
  const isBought = (name: string) => routes.some((route) => reachesUpstream(name, facts.protocol, route.protocol));
  const option = facts.options.find((name) => isBought(name) && !price.tools.has(optionPriceName(name, price.tools)));
  if (option !== undefined) return refuse(option, `What "${option}" asks for`);
  if (!routes.some((route) => buysTools(route, facts.protocol))) return undefined;
  const tool = neededTool(facts, price);
  return tool === undefined ? undefined : refuse("tools", `The hosted tool "${tool}"`, HOSTED_TOOL_REMEDY);
}
