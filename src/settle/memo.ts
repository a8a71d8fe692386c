/** The memo of a ledger line: everything needed to recompute its amount, and how the request went. */

import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Route } from "../values/catalog.ts";
import { pieceOf, quote, remembered, type TextPiece, TwoTexts, word } from "../values/json-text.ts";
import type { NanoUsd } from "../values/money.ts";
import type { PriceSnapshot, UnitPrices } from "../values/price.ts";
import { COMPLETE, type RouteUse } from "./meter.ts";

/** Usage at a route, and its price there. */
export interface Bill extends RouteUse {
  /** At the route's cost prices, multiplier 1. */
  readonly cost: NanoUsd;
  /** The route's cost prices. */
  readonly snapshot: PriceSnapshot;
}

/** An attempt as the ledger keeps it: flat, cost in nano-dollars. */
export interface AttemptNote {
  readonly upstream: string;
  readonly model: string;
  readonly outcome: string;
  readonly status: number | undefined;
  /** All input tokens, cached ones included. */
  readonly input: number;
  readonly output: number;
  readonly counted: "upstream" | "estimate" | "none";
  /** At the route's cost price, multiplier 1. */
  readonly cost: NanoUsd;
  readonly paid_by: "client" | "absorbed" | "nobody";
  readonly why: string;
  /** The route's cost prices, if the line has others. */
  readonly costPrices?: PriceSnapshot | undefined;
}

/** What a memo has in addition to the bill. */
interface MemoFacts {
  /** The prices behind the line's amount, if they differ from the cost prices. */
  readonly prices?: PriceSnapshot;
  /**
   * Whether the hold was for the worst case, because the account's charges have repeatedly exceeded its holds and
   * funds.
   */
  readonly heldWorstCase?: boolean | undefined;
  /** Why the client pays although nothing was delivered. */
  readonly paid?: string | undefined;
  /** All attempts of the request. Only one of its lines has them. */
  readonly attempts?: readonly AttemptNote[] | undefined;
}

/* Member names, each with the punctuation before it. */
const INPUT = pieceOf('{"input":');
const CACHED_INPUT = pieceOf(',"cached_input":');
const CACHE_WRITE = pieceOf(',"cache_write":');
const CACHE_WRITE_1H = pieceOf(',"cache_write_1h":');
const OUTPUT = pieceOf(',"output":');
const REASONING = pieceOf(',"reasoning":');
const TOOL_CALLS = pieceOf(',"tool_calls":');
const UNPAID_TOOL_CALLS = pieceOf(',"unpaid_tool_calls":');
const CALLS_BEYOND_HOLD = pieceOf(',"calls_beyond_hold":');
const MULTIPLIER = pieceOf(',"multiplier":"');
const TIER = pieceOf(',"tier":');
const COUNTED = pieceOf(',"counted":');
const FINAL = pieceOf(',"final":true');
const SURPRISE = pieceOf(',"surprise":');
const ENDED = pieceOf(',"ended":');
const PAID = pieceOf(',"paid":');
const HOLD = pieceOf(',"hold":"');
const HELD_WORST_CASE = pieceOf(',"held":"dearest"');
const COST = pieceOf(',"cost":"');
const ANSWERED_BY = pieceOf(',"answered_by":');
const END = pieceOf("}");

/**
 * A JSON object, flat except for tools and attempts. Token counts are numbers, prices are integer strings. Its quoted
 * text for the journal's record is made at the same time (quotedMemo).
 */
export function memoOf(
  { hold, catalogVersion }: Pick<ChargeTerms, "hold" | "catalogVersion">,
  bill: Bill,
  { prices: snapshot = bill.snapshot, heldWorstCase, paid, attempts }: MemoFacts = {},
): string {
  const { route, surprises, unpaidCalls, callsBeyondHold, ended, tier, answeredBy } = bill;
  const { usage, counted } = bill.metered;
  const memo = new TwoTexts();
  memo.count(INPUT, usage.input);
  memo.count(CACHED_INPUT, usage.cachedInput);
  memo.count(CACHE_WRITE, usage.cacheWrite);
  memo.count(CACHE_WRITE_1H, usage.cacheWrite1h);
  memo.count(OUTPUT, usage.output);
  memo.count(REASONING, usage.reasoning);
  memo.member(TOOL_CALLS, objectPiece(usage.toolCalls));
  if (unpaidCalls?.length) memo.member(UNPAID_TOOL_CALLS, objectPiece(unpaidCalls));
  if (callsBeyondHold) memo.member(CALLS_BEYOND_HOLD, objectPiece(callsBeyondHold));
  memo.add(linePrices(snapshot.prices, snapshot.tools));
  memo.amount(MULTIPLIER, snapshot.multiplier);
  if (tier !== undefined) memo.member(TIER, pieceOf(quote(tier)));
  memo.member(COUNTED, word(counted));
  // The upstream's final count is owed in full, although the client disconnected before it.
  if (counted === "upstream" && ended !== COMPLETE) memo.add(FINAL);
  if (surprises?.length) memo.member(SURPRISE, word(surprises.join(",")));
  memo.member(ENDED, word(ended));
  if (paid !== undefined) memo.member(PAID, word(paid));
  memo.amount(HOLD, hold);
  if (heldWorstCase) memo.add(HELD_WORST_CASE);
  memo.add(placeOf(route, catalogVersion));
  memo.amount(COST, bill.cost);
  if (answeredBy !== undefined) memo.member(ANSWERED_BY, pieceOf(quote(answeredBy)));
  if (attempts?.length) addNotes(memo, attempts);
  memo.add(END);
  last = memo;
  return memo.plain;
}

/** The last memo made. */
let last: TextPiece = pieceOf("{}");

/**
 * A memo as a JSON string. The charge usually goes to the journal in the same turn, so its quoted text is usually at
 * hand.
 */
export function quotedMemo(memo: string): string {
  return memo === last.plain ? `"${last.within}"` : quote(memo);
}

const NOTHING = pieceOf("{}");

function objectPiece(value: object): TextPiece {
  // Most replies call no priced tools.
  for (const _ in value) return pieceOf(JSON.stringify(value));
  return NOTHING;
}

/* Many requests share a route and its price tables, so their part of the memo is made once. */

const placeOf = remembered(({ upstream, upstreamModel }: Route, catalogVersion: string) => {
  return `,"catalog":${quote(catalogVersion)},"upstream":${quote(upstream)},"upstream_model":${quote(upstreamModel)}`;
});
const linePrices = remembered((prices: UnitPrices, tools: PriceSnapshot["tools"]) => {
  return `,${membersOf(prices, "price_")},"price_tools":${toolsText(tools)}`;
});
const costPrices = remembered((prices: UnitPrices, tools: PriceSnapshot["tools"]) => {
  return `,"cost_prices":{${membersOf(prices, "")}},"cost_tools":${toolsText(tools)}`;
});

/** Nano-dollars per million tokens, as integer strings. */
function membersOf({ input, cachedInput, cacheWrite, cacheWrite1h, output }: UnitPrices, prefix: string): string {
  const named = { input, cached_input: cachedInput, cache_write: cacheWrite, cache_write_1h: cacheWrite1h, output };
  return Object.entries(named)
    .map(([name, price]) => `"${prefix}${name}":"${price}"`)
    .join();
}

/** Nano-dollars per call, as integer strings. */
function toolsText(tools: PriceSnapshot["tools"]): string {
  return JSON.stringify(Object.fromEntries([...tools].map(([tool, price]) => [tool, String(price)])));
}

/* The attempts of a request. */

const ATTEMPTS = pieceOf(',"attempts":[');
const ATTEMPTS_END = pieceOf("]");
const NOTE = pieceOf('{"upstream":');
const NEXT_NOTE = pieceOf(',{"upstream":');
const MODEL = pieceOf(',"model":');
const OUTCOME = pieceOf(',"outcome":');
const STATUS = pieceOf(',"status":');
const NOTE_INPUT = pieceOf(',"input":');
const PAID_BY = pieceOf(',"paid_by":');
const WHY = pieceOf(',"why":');

function addNotes(memo: TwoTexts, notes: readonly AttemptNote[]): void {
  memo.add(ATTEMPTS);
  let name = NOTE;
  for (const note of notes) {
    memo.member(name, word(note.upstream));
    memo.member(MODEL, word(note.model));
    memo.member(OUTCOME, word(note.outcome));
    if (note.status !== undefined) memo.count(STATUS, note.status);
    memo.count(NOTE_INPUT, note.input);
    memo.count(OUTPUT, note.output);
    memo.member(COUNTED, word(note.counted));
    memo.amount(COST, note.cost);
    memo.member(PAID_BY, word(note.paid_by));
    memo.member(WHY, word(note.why));
    if (note.costPrices) {
      memo.add(costPrices(note.costPrices.prices, note.costPrices.tools));
    }
    memo.add(END);
    name = NEXT_NOTE;
  }
  memo.add(ATTEMPTS_END);
}
