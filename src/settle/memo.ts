/** The memo of a ledger line: everything that is needed to compute its amount again, and how the request went. */

import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Route } from "../values/catalog.ts";
import { pieceOf, quote, remembered, type TextPiece, TwoTexts, word } from "../values/json-text.ts";
import type { NanoUsd } from "../values/money.ts";
import type { PriceSnapshot, UnitPrices } from "../values/price.ts";
import { COMPLETE, type RouteUse } from "./meter.ts";

/** What was used at a route, and its price there. */
export interface Bill extends RouteUse {
  /** At the route's cost prices, multiplier 1. */
  readonly cost: NanoUsd;
  /** Those prices. */
  readonly snapshot: PriceSnapshot;
}

/** A try as the ledger keeps it: flat, cost in nano-dollars. */
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
  /** The route's cost prices, where the line has others. */
  readonly costPrices?: PriceSnapshot | undefined;
}

/** What a memo has beside the bill. */
interface MemoFacts {
  /** The prices that the line's amount is made of, where they are not those of the cost. */
  readonly prices?: PriceSnapshot;
  /** Whether the hold was the dearest, for an account whose charges went beyond its holds and funds again and again. */
  readonly heldDear?: boolean | undefined;
  /** Why the client pays although it was given nothing. */
  readonly paid?: string | undefined;
  /** Every try of the request, on one of its lines. */
  readonly attempts?: readonly AttemptNote[] | undefined;
}

/* Names, each with what comes before it. */
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
const HELD_DEAR = pieceOf(',"held":"dearest"');
const COST = pieceOf(',"cost":"');
const ANSWERED_BY = pieceOf(',"answered_by":');
const END = pieceOf("}");

/**
 * A flat JSON object but for tools and attempts. Numbers of tokens, prices as integer strings. Its text for the journal's record
 * is made with it (quotedMemo).
 */
export function memoOf(
  { hold, catalogVersion }: Pick<ChargeTerms, "hold" | "catalogVersion">,
  bill: Bill,
  { prices: snapshot = bill.snapshot, heldDear, paid, attempts }: MemoFacts = {},
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
  // The upstream's last word is owed as it is, although the client had left before it.
  if (counted === "upstream" && ended !== COMPLETE) memo.add(FINAL);
  if (surprises?.length) memo.member(SURPRISE, word(surprises.join(",")));
  memo.member(ENDED, word(ended));
  if (paid !== undefined) memo.member(PAID, word(paid));
  memo.amount(HOLD, hold);
  if (heldDear) memo.add(HELD_DEAR);
  memo.add(placeOf(route, catalogVersion));
  memo.amount(COST, bill.cost);
  if (answeredBy !== undefined) memo.member(ANSWERED_BY, pieceOf(quote(answeredBy)));
  if (attempts?.length) addNotes(memo, attempts);
  memo.add(END);
  last = memo;
  return memo.plain;
}

/** The memo that was made last. */
let last: TextPiece = pieceOf("{}");

/** A memo as a text of JSON. Its charge goes to the journal in the turn in which it was made, so that it is mostly known. */
export function quotedMemo(memo: string): string {
  return memo === last.plain ? `"${last.within}"` : quote(memo);
}

const NOTHING = pieceOf("{}");

function objectPiece(value: object): TextPiece {
  // Most replies call no tools that cost anything.
  for (const _ in value) return pieceOf(JSON.stringify(value));
  return NOTHING;
}

/* A route and the tables of its prices serve many requests: what a memo says of them is written once. */

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

/* The tries of a request. */

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
