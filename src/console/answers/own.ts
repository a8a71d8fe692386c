/** Forms of answers only for owners: the admin's without the operator's data, and those that only owners' pages use. */
import { BUDGET_SPANS } from "../../store/limits/limits.ts";
import type { Static } from "../vocabulary.ts";
import { AccountWithCards, type CardList, type KeyPage, type NewKeyShape } from "./answers.ts";
import { count, day, flag, instant, list, object, oneOf, orNull, text, usd } from "./shape.ts";

// Labels are operators' notes.
const { labels: _operators, ...OWN } = AccountWithCards.properties;
export const OwnAccountShape = object("OwnAccount", OWN);
export type OwnAccountAnswer = Static<typeof OwnAccountShape>;

const keyId = text("The key's id, which is no secret.", "key_4tR0000abcXyZ01234");

const Warning = object("Warning", {
  kind: oneOf(
    "The kind of the warning.",
    "balance",
    "card_end",
    "card_quota",
    "account_budget",
    "key_budget",
    "key_end",
  ),
  key_id: orNull(keyId),
  name: orNull(text("The display name of the key, or the card kind.", "Laptop of Alice")),
  rest_usd: orNull(usd("What is left", "0.40")),
  limit_usd: orNull(usd("The limit that it is part of, or the balance below which there is a notice", "5.00")),
  span: orNull(oneOf("The period of the budget.", ...BUDGET_SPANS)),
  at: orNull(instant("When it ends, or the budget resets.")),
  followed: flag("Whether a card of the same group follows this one."),
});
export type WarningAnswer = Static<typeof Warning>;

const SpendDay = object("SpendDay", {
  day: day("The UTC day."),
  usd: usd("What was charged", "2.50"),
  requests: count("Requests that were charged.", 42),
});

const ModelState = object("ModelState", {
  model: text("The model's name.", "big-1"),
  state: oneOf("`trouble`: no upstream of the model is healthy now; requests may fail.", "up", "trouble"),
});

export const OverviewShape = object("Overview", {
  since: day("The first day of the span, UTC."),
  until: day("Today, UTC."),
  today_usd: usd("What was charged today", "2.50"),
  total_usd: usd("What was charged in the span", "20.00"),
  days: list(SpendDay),
  warnings: list(Warning),
  models: list(ModelState),
});
export type OverviewAnswer = Static<typeof OverviewShape>;

const KeyGroup = object("KeyGroup", {
  name: text("The group.", "cards"),
  kind: oneOf("Who pays: time cards, or the balance.", "time_card", "pay_per_use"),
  falls_back: flag("Whether the balance pays if no time card does."),
  multiplier: text("The multiplier of prices.", "1.00"),
  models: list(text("A model that it serves and that a plan of the account includes.", "big-1")),
  card_runs: flag("Whether a time card of it is running."),
  requests_per_minute: orNull(count("Requests per minute; null: no such limit.", 60)),
  tokens_per_minute: orNull(count("Tokens per minute; null: no such limit.", 100_000)),
  concurrency: count("Requests at once.", 100),
});
export const KeyGroupsShape = object("KeyGroups", {
  address: orNull(text("The address for clients; null: the address of the page.", "https://api.example")),
  items: list(KeyGroup),
});
export type KeyGroupsAnswer = Static<typeof KeyGroupsShape>;
export type KeyGroupAnswer = Static<typeof KeyGroup>;

export const KeySpendShape = object("KeySpend", {
  since: day("The first day, UTC."),
  until: day("The last day, UTC."),
  items: list(
    object("SpendOfKey", {
      key_id: keyId,
      today_usd: usd("What was charged today", "0.50"),
      usd: usd("What was charged in the span", "2.50"),
      requests: count("Requests that were charged in the span.", 42),
    }),
  ),
});
export type KeySpendAnswer = Static<typeof KeySpendShape>;
export type CardListAnswer = Static<typeof CardList>;
export type NewKeyAnswer = Static<typeof NewKeyShape>;
export type KeyListAnswer = Static<typeof KeyPage>;
