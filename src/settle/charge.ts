/** What a request costs the client and the operator once it has ended: pure arithmetic over the permit. */
import type { SettleAsk } from "../store/settlement.ts";
import type { Group, Model, Route } from "../values/catalog.ts";
import type { IdempotentRequest, KeptRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import { leastNano, type NanoUsd, ZERO } from "../values/money.ts";
import { charge, MULTIPLIER_ONE, type PriceSnapshot } from "../values/price.ts";
import type { RequestId } from "../values/request-id.ts";
import { totalInput, type Usage } from "../values/tokens.ts";
import { type Measured, type Metered, meter } from "./meter.ts";

/** The permit's part that settlement needs; admission's permit has these members and more. */
export interface ChargeTerms {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly keyId: string;
  readonly group: Group;
  readonly model: Model;
  readonly terms: {
    readonly inputTokens: number;
    readonly inputEstimate: number;
    readonly choices: number;
    readonly tier: string | undefined;
  };
  readonly hold: NanoUsd;
  readonly entitlement: string | undefined;
  readonly unmetered: boolean;
  readonly storeTimeMs: number;
  readonly catalogVersion: string;
  readonly idempotency?: KeptRequest | undefined;
}

/** How the request ended for the money. */
export interface Ending {
  /** True when a semantic byte was handed to a socket not known to be closed (promise 3). */
  readonly delivered: boolean;
  /** Whether the upstream's reply came to its own end. */
  readonly complete: boolean;
  /** The route of the attempt that answered, or undefined when none did. */
  readonly route: Route | undefined;
  /** Why nothing was delivered or the stream was cut; names the absorbed line. */
  readonly cause: string;
  readonly measured: Omit<Measured, "inputEstimate">;
}

export interface Charge {
  readonly ask: SettleAsk;
  readonly metered: Metered | undefined;
}

/** The settlement of a request that reached its end, however it ended. */
export function settlementOf(terms: ChargeTerms, ending: Ending): Charge {
  if (!ending.route) return { ask: voidOf(terms), metered: undefined };
  const metered = meteredOf(terms, ending.measured);
  return ending.delivered
    ? { ask: posted(terms, ending, metered), metered }
    : { ask: absorbed(terms, ending, metered, ending.route), metered };
}

/** What a running request has used and cost so far, as it would be billed if it were cut here. */
export function costSoFar(
  terms: ChargeTerms,
  seen: Ending["measured"],
): { readonly usage: Usage; readonly cost: NanoUsd } {
  const { usage } = meteredOf(terms, seen);
  const { amount } = charge(terms.model.price, terms.group.multiplier, usage, terms.terms.tier);
  return { usage, cost: amount };
}

function meteredOf(terms: ChargeTerms, seen: Ending["measured"]): Metered {
  const measured = believable(seen, terms) ? seen : { ...seen, usage: undefined };
  return meter({ ...measured, inputEstimate: terms.terms.inputEstimate });
}

/** A count above what the model can read or write at all is a lie, whoever tells it (reliability rows C10, 64). */
function believable({ usage }: Ending["measured"], { model, terms }: ChargeTerms): boolean {
  if (!usage) return true;
  return totalInput(usage) <= model.contextTokens && usage.output <= model.maxOutputTokens * terms.choices;
}

function posted(terms: ChargeTerms, ending: Ending, metered: Metered): SettleAsk {
  const { amount, snapshot } = charge(terms.model.price, terms.group.multiplier, metered.usage, terms.terms.tier);
  // What we estimated, or cut short, never costs more than was set aside for it (promise 3).
  const bounded = ending.complete && metered.counted === "upstream" ? amount : leastNano(amount, terms.hold);
  return {
    ...voidOf(terms),
    voided: false,
    amount: terms.unmetered ? ZERO : bounded,
    upstream: ending.route?.upstream,
    tokensUsed: totalInput(metered.usage) + metered.usage.output,
    memo: memoOf(terms, metered, snapshot, ending),
  };
}

/** Nothing was delivered: the client pays nothing, and what the upstream still costs is named. */
function absorbed(terms: ChargeTerms, ending: Ending, metered: Metered, route: Route): SettleAsk {
  const { amount, snapshot } = charge(route.cost, MULTIPLIER_ONE, metered.usage, terms.terms.tier);
  return {
    ...voidOf(terms),
    absorbed: amount,
    absorbedCause: ending.cause,
    upstream: route.upstream,
    memo: memoOf(terms, metered, snapshot, ending),
  };
}

/** The settlement of a request that never reached an upstream: its hold is given back. */
export function voidOf(terms: ChargeTerms): SettleAsk {
  return {
    requestId: terms.requestId,
    tag: terms.tag,
    admittedAtMs: terms.storeTimeMs,
    group: terms.group.name,
    kind: terms.group.kind,
    entitlement: terms.entitlement,
    keyId: terms.keyId,
    perKey: terms.group.limits.perKey,
    model: terms.model.name,
    amount: ZERO,
    absorbed: ZERO,
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: terms.terms.inputTokens,
    tokensUsed: 0,
    tokensPerMinute: terms.group.limits.tokensPerMinute,
    voided: true,
    memo: "{}",
    idempotency: terms.idempotency,
  };
}

/**
 * Gives up an admission whose outcome is unknown: should the store have carried it out, or still do so, it holds nothing.
 * @param nowMs the time at which the answer failed to come; the store's own is not known.
 */
export function abandoned(
  requestId: RequestId,
  tag: AccountTag,
  inputTokens: number,
  nowMs: number,
  idempotency?: IdempotentRequest | undefined,
): SettleAsk {
  return {
    requestId,
    tag,
    admittedAtMs: nowMs,
    group: "",
    kind: "pay_per_use",
    entitlement: undefined,
    keyId: "",
    perKey: false,
    model: "",
    amount: ZERO,
    absorbed: ZERO,
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: inputTokens,
    tokensUsed: 0,
    tokensPerMinute: undefined,
    voided: true,
    memo: "{}",
    idempotency: idempotency && { ...idempotency, streamed: false, untilMs: nowMs },
  };
}

/** Everything that anybody needs to compute the amount again. Numbers of tokens, prices as integer strings. */
function memoOf(terms: ChargeTerms, metered: Metered, snapshot: PriceSnapshot, ending: Ending): string {
  const { usage } = metered;
  const { prices } = snapshot;
  return JSON.stringify({
    input: usage.input,
    cached_input: usage.cachedInput,
    cache_write: usage.cacheWrite,
    cache_write_1h: usage.cacheWrite1h,
    output: usage.output,
    reasoning: usage.reasoning,
    tool_calls: usage.toolCalls,
    price_input: String(prices.input),
    price_cached_input: String(prices.cachedInput),
    price_cache_write: String(prices.cacheWrite),
    price_cache_write_1h: String(prices.cacheWrite1h),
    price_output: String(prices.output),
    price_tools: Object.fromEntries([...snapshot.tools].map(([tool, price]) => [tool, String(price)])),
    multiplier: String(snapshot.multiplier),
    tier: terms.terms.tier,
    counted: metered.counted,
    ended: ending.complete ? "complete" : ending.cause,
    hold: String(terms.hold),
    catalog: terms.catalogVersion,
    upstream: ending.route?.upstream,
  });
}
