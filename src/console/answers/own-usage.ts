/**
 * The forms of answers that exist only in the owners' console. None of them contains what a request cost the operator,
 * what was absorbed, or which upstream answered.
 */

import type { Static } from "../vocabulary.ts";
import { count, day, flag, instant, list, object, oneOf, orNull, text, usd } from "./shape.ts";

const total = {
  usd: usd("What was charged", "0.42"),
  requests: count("Requests that were charged.", 12),
  input_tokens: count("Input tokens at the full price.", 1200),
  cached_input_tokens: count("Input tokens that were read from a cache.", 400),
  cache_write_tokens: count("Input tokens that were written to a cache.", 0),
  output_tokens: count("Output tokens.", 900),
  reasoning_tokens: count("Output tokens that were reasoning.", 100),
};
const OwnTotal = object("OwnTotal", total);
export type OwnTotalAnswer = Static<typeof OwnTotal>;
const OwnSum = object("The day, model, key or group.", {
  name: text("The day, model, key or group.", "big-1"),
  ...total,
});
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
  price_usd: text("The price of a million tokens, or of a call.", "1.25"),
  usd: text("Count times price, exactly.", "0.000015"),
});

const OwnCharge = object("OwnCharge", {
  tokens: list(Priced),
  calls: list(Priced),
  reasoning_tokens: count("Output tokens that were reasoning.", 0),
  multiplier: text("The group's multiplier.", "1.00"),
  tier: orNull(text("The service tier of these prices; null: the standard prices.", "priority")),
  computed_usd: usd("Tokens and calls at their prices, times the multiplier, rounded half up", "0.003412"),
  hold_usd: usd("What was held at the end", "0.08"),
  held_dearest: flag(
    "Whether the highest possible cost was held, because the account's recent charges exceeded its holds.",
  ),
  counted: text("Who counted the tokens: `upstream`, or `estimate` by this gateway.", "upstream"),
  ended: text("`complete`, or why the answer was cut.", "complete"),
  left_too_often: flag(
    "Whether it was charged although nothing was delivered, because the client disconnected too often.",
  ),
  why: oneOf(
    "Why this amount was charged: as computed; at most the hold, because the answer was cut or its tokens were estimated; at most the funds; paid by a card without a quota; as stated in the line.",
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
  kind: oneOf("The kind of movement.", "usage", "topup", "adjust", "card", "opening", "unreadable"),
  usd: usd("The amount", "0.003412"),
  change_usd: usd("The change of the balance; 0 if a card paid", "-0.003412"),
  balance_usd: usd("The account's balance after it", "9.996588"),
  reference: text("The id of the request, payment, adjustment or code.", "pay_1"),
  paid_by: orNull(text("`balance`, or the time card that paid; null for other lines.", "balance")),
  group: text("The group, if there is one.", "big"),
  model: text("The model, if there is one.", "big-1"),
  key: text("The key's id, if there is one.", "key_4tR0000abcXyZ01234"),
  charge: orNull(OwnCharge),
});
export type OwnLineAnswer = Static<typeof OwnLine>;

export const OwnLinesPage = object("OwnLinesPage", {
  items: list(OwnLine),
  next: orNull(count("The `before` of the next page; null on the last one.", 100)),
  searched_to: orNull(instant("The instant of the oldest line that was searched, if not all of them are shown.")),
});
export type OwnLinesAnswer = Static<typeof OwnLinesPage>;

const OwnTry = object("OwnTry", {
  outcome: text("How the attempt ended.", "ok"),
  status: orNull(count("The HTTP status of the model server; null without one.", 200)),
  charged: flag("Whether this is the attempt that was charged."),
  why: text("`answered`, or why it failed or was cut.", "answered"),
});
export type OwnTryAnswer = Static<typeof OwnTry>;

export const OwnRequestShape = object("OwnRequest", {
  request: text("The id of the request.", "req_0198c5d2a1b27c3e8f001122"),
  outcome: oneOf(
    "`not_charged`: it reached a model server, and nothing was charged. `searching`: continue with `next`.",
    "charged",
    "not_charged",
    "searching",
  ),
  cause: orNull(text("Why nothing was charged.", "client_gone")),
  line: orNull(OwnLine),
  tries: list(OwnTry),
  next: orNull(count("The `after` with which the search continues; null when it is finished.", 5000)),
});
export type OwnRequestAnswer = Static<typeof OwnRequestShape>;

const unit = {
  input: text("A million input tokens.", "1.25"),
  cached_input: text("A million input tokens that are read from a cache.", "0.125"),
  cache_write: text("A million input tokens that are written to a cache.", "1.5625"),
  cache_write_1h: text("A million input tokens that are written to a cache for an hour.", "2.50"),
  output: text("A million output tokens.", "10.00"),
};
const OwnModel = object("OwnModel", {
  name: text("The exact name.", "big-1"),
  plans: list(text("A plan that includes it.", "pro")),
  groups: list(
    object("OwnModelGroup", {
      name: text("The group.", "big"),
      kind: oneOf("Who pays.", "time_card", "pay_per_use"),
      multiplier: text("The multiplier of its prices.", "1.00"),
      refusal: orNull(
        text("Why a request would be refused now: a cause of docs/errors.md; null: it would not.", "no_entitlement"),
      ),
    }),
  ),
  usable: flag("Whether a key in one of these groups could use it now."),
  price_usd_per_million: object("UnitPrices", unit),
  other_prices: list(
    object("OtherPrices", {
      tier: orNull(text("For requests with this service tier; null: any.", "priority")),
      above_input_tokens: orNull(count("For requests with more input tokens than this; null: any.", 200_000)),
      usd_per_million: object("UnitPrices", unit),
    }),
  ),
  tools: list(object("ToolPrice", { name: text("The tool.", "web_search"), usd: text("A call.", "0.01") })),
  context_tokens: count("Maximum of input and output tokens together.", 200_000),
  max_output_tokens: count("The highest output limit.", 32_000),
  default_output_tokens: count("The output limit of a request without one.", 8_192),
  thinking: oneOf(
    "`switch`: can be switched on and off. `least`: cannot be switched off; a request to do so gets the least thinking. `fixed`: switching it off is refused. `none`: the model does not think.",
    "switch",
    "least",
    "fixed",
    "none",
  ),
  efforts: list(text("A thinking effort that a request may ask for.", "high")),
});
export type OwnModelAnswer = Static<typeof OwnModel>;
export const OwnModelsShape = object("OwnModels", { items: list(OwnModel) });
export type OwnModelsAnswer = Static<typeof OwnModelsShape>;

const ErrorWords = object("ErrorWords", {
  cause: text("A stable code for programs.", "unknown_model"),
  status: count("The HTTP status.", 404),
  identifier: text("The identifier that SDKs match on.", "model_not_found"),
  means: text("What it means.", "The model is not supported by any configured account in this group"),
  remedy: text("What to do.", "Copy the model's name exactly from the catalog (GET /v1/models)."),
});
export type ErrorWordsAnswer = Static<typeof ErrorWords>;
export const ErrorsShape = object("Errors", { items: list(ErrorWords) });
export type ErrorsAnswer = Static<typeof ErrorsShape>;
