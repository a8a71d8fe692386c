/**
 * The forms of what only owners are answered in their console. None of them has what a request cost the operator, what
 * was absorbed, or where it was answered.
 */

import type { Static } from "../vocabulary.ts";
import { count, day, flag, instant, list, object, oneOf, orNull, text, usd } from "./shape.ts";

const total = {
  usd: usd("What was charged", "0.42"),
  requests: count("Requests that were charged.", 12),
  input_tokens: count("Input tokens at the full price.", 1200),
  cached_input_tokens: count("Input tokens that a cache had.", 400),
  cache_write_tokens: count("Input tokens that were written to a cache.", 0),
  output_tokens: count("Output tokens.", 900),
  reasoning_tokens: count("Those among them that were reasoning.", 100),
};
const OwnTotal = object("OwnTotal", total);
export type OwnTotalAnswer = Static<typeof OwnTotal>;
const OwnSum = object("OwnSum", { name: text("The day, model, key or group.", "big-1"), ...total });
export type OwnSumAnswer = Static<typeof OwnSum>;

export const OwnUsageShape = object("OwnUsage", {
  since: day("The first day."),
  until: day("The last day."),
  total: OwnTotal,
  by_day: list(OwnSum),
  by_model: list(OwnSum),
  by_key: list(OwnSum),
  by_group: list(OwnSum),
});
export type OwnUsageAnswer = Static<typeof OwnUsageShape>;

const Priced = object("PricedTokens", {
  kind: text("`input`, `cached_input`, `cache_write`, `cache_write_1h`, `output`, or the name of a tool.", "input"),
  count: count("Tokens, or calls.", 12),
  price_usd: text("For a million tokens, or for a call.", "1.25"),
  usd: text("Both multiplied, exactly.", "0.000015"),
});

const OwnCharge = object("OwnCharge", {
  tokens: list(Priced),
  calls: list(Priced),
  reasoning_tokens: count("Those of the output tokens that were reasoning.", 0),
  multiplier: text("The group's multiplier.", "1.00"),
  tier: orNull(text("The service tier whose prices these are.", "priority")),
  computed_usd: usd("Tokens and calls at their prices, times the multiplier, rounded half up", "0.003412"),
  hold_usd: usd("What was set aside at the end", "0.08"),
  held_dearest: flag("Whether that was the dearest: the account's charges were above its holds lately."),
  counted: text("Who counted the tokens: `upstream`, the model's server, or `estimate`, this gateway.", "upstream"),
  ended: text("`complete`, or why the answer was cut.", "complete"),
  left_too_often: flag("Whether it is paid although nothing was delivered: the client left too often."),
  why: oneOf(
    "Why the amount is what it is: as computed; no more than the hold, since the answer was cut or its tokens estimated; no more than the funds; paid by a card without a quota; as the line says.",
    "exact",
    "hold",
    "funds",
    "card",
    "line",
  ),
});
export type OwnChargeAnswer = Static<typeof OwnCharge>;

const OwnLine = object("OwnLine", {
  seq: count("The line's number.", 7),
  at: instant("When the store wrote it."),
  kind: oneOf("What moved money.", "usage", "topup", "adjust", "card", "opening", "unreadable"),
  usd: usd("The amount", "0.003412"),
  change_usd: usd("By how much it changed the balance; 0 where a card paid", "-0.003412"),
  balance_usd: usd("The account's balance after it", "9.996588"),
  reference: text("The id of the request, payment, adjustment or code.", "pay_1"),
  paid_by: orNull(text("`balance`, or the time card that paid; null for other lines.", "balance")),
  group: text("The group, where there is one.", "big"),
  model: text("The model, where there is one.", "big-1"),
  key: text("The key's id, where there is one.", "key_4tR0000abcXyZ01234"),
  charge: orNull(OwnCharge),
});
export type OwnLineAnswer = Static<typeof OwnLine>;

export const OwnLinesPage = object("OwnLinesPage", {
  items: list(OwnLine),
  next: orNull(count("The `before` of the next page; null on the last one.", 100)),
  searched_to: orNull(instant("The oldest line that was looked at, where not all of them are shown.")),
});
export type OwnLinesAnswer = Static<typeof OwnLinesPage>;

const OwnTry = object("OwnTry", {
  outcome: text("What became of it.", "ok"),
  status: orNull(count("The HTTP status of the model's server; null without one.", 200)),
  charged: flag("Whether this is the one that is paid."),
  why: text("`answered`, or why it failed or was cut.", "answered"),
});
export type OwnTryAnswer = Static<typeof OwnTry>;

export const OwnRequestShape = object("OwnRequest", {
  request: text("The id of the request.", "req_0198c5d2a1b27c3e8f001122"),
  outcome: oneOf(
    "`not_charged`: it reached a model's server, and nothing was charged. `searching`: `next` goes on.",
    "charged",
    "not_charged",
    "searching",
  ),
  cause: orNull(text("Why nothing was charged.", "client_gone")),
  line: orNull(OwnLine),
  tries: list(OwnTry),
  next: orNull(count("The `after` with which the search goes on; null once it is over.", 5000)),
});
export type OwnRequestAnswer = Static<typeof OwnRequestShape>;

const unit = {
  input: text("A million input tokens.", "1.25"),
  cached_input: text("A million that a cache had.", "0.125"),
  cache_write: text("A million that are written to a cache.", "1.5625"),
  cache_write_1h: text("A million that are written to a cache for an hour.", "2.50"),
  output: text("A million output tokens.", "10.00"),
};
const OwnModel = object("OwnModel", {
  name: text("The exact name.", "big-1"),
  plans: list(text("A plan that has it.", "pro")),
  groups: list(
    object("OwnModelGroup", {
      name: text("The group.", "big"),
      kind: oneOf("Who pays.", "time_card", "pay_per_use"),
      multiplier: text("What prices are multiplied by.", "1.00"),
      refusal: orNull(
        text("Why a request would be refused now: a cause of docs/errors.md. Null: it would not.", "no_entitlement"),
      ),
    }),
  ),
  usable: flag("Whether a key in one of these groups could use it now."),
  price_usd_per_million: object("UnitPrices", unit),
  other_prices: list(
    object("OtherPrices", {
      tier: orNull(text("With this service tier.", "priority")),
      above_input_tokens: orNull(count("With more input tokens than so many.", 200_000)),
      usd_per_million: object("UnitPrices", unit),
    }),
  ),
  tools: list(object("ToolPrice", { name: text("The tool.", "web_search"), usd: text("A call.", "0.01") })),
  context_tokens: count("Tokens of input and output together.", 200_000),
  max_output_tokens: count("The highest output limit.", 32_000),
  default_output_tokens: count("The limit of a request that names none.", 8_192),
  thinking: oneOf(
    "`switch`: on and off. `least`: it cannot be switched off, and is asked for the least. `fixed`: switching it off is refused. `none`: it does not think.",
    "switch",
    "least",
    "fixed",
    "none",
  ),
  efforts: list(text("How hard it can be told to think.", "high")),
});
export type OwnModelAnswer = Static<typeof OwnModel>;
export const OwnModelsShape = object("OwnModels", { items: list(OwnModel) });
export type OwnModelsAnswer = Static<typeof OwnModelsShape>;

const ErrorWords = object("ErrorWords", {
  cause: text("What programs match on.", "unknown_model"),
  status: count("The HTTP status.", 404),
  identifier: text("What clients match on.", "model_not_found"),
  means: text("What it means.", "The model is not supported by any configured account in this group"),
  remedy: text("What to do.", "Copy the model's name exactly from the catalog (GET /v1/models)."),
});
export type ErrorWordsAnswer = Static<typeof ErrorWords>;
export const ErrorsShape = object("Errors", { items: list(ErrorWords) });
export type ErrorsAnswer = Static<typeof ErrorsShape>;
