/** A key's limits as texts, and as the input of their form. */
import type { KeyAnswer } from "../../../answers/answers.ts";
import { count, usd } from "../../parts/format.ts";
import { T } from "../../texts/texts.ts";

export type KeyLimits = KeyAnswer["limits"];
export const SPANS = ["day", "week", "month", "total"] as const;
export const RATES = ["requests_per_minute", "tokens_per_minute", "concurrency"] as const;
export const LISTS = ["models", "addresses"] as const;

const W = T.owner.keys.words;

/** Each limit that is set. */
export function limitWords(limits: KeyLimits): readonly string[] {
  const { budgets_usd, requests_per_minute, tokens_per_minute, concurrency, models, addresses } = limits;
  const budgets = SPANS.map((span) => (budgets_usd[span] === null ? null : W[span](usd(budgets_usd[span]))));
  const all = [
    ...budgets,
    requests_per_minute && W.requests(count(requests_per_minute)),
    tokens_per_minute && W.tokens(count(tokens_per_minute)),
    concurrency && W.concurrency(count(concurrency)),
    models && W.models(models.length),
    addresses && W.addresses(addresses.length),
  ];
  return all.filter((text): text is string => !!text);
}

export type TypedLimits = Readonly<
  Record<(typeof SPANS)[number] | (typeof RATES)[number] | (typeof LISTS)[number], string>
>;

export function typedOf(limits: KeyLimits): TypedLimits {
  return {
    ...limits.budgets_usd,
    day: limits.budgets_usd.day ?? "",
    week: limits.budgets_usd.week ?? "",
    month: limits.budgets_usd.month ?? "",
    total: limits.budgets_usd.total ?? "",
    requests_per_minute: `${limits.requests_per_minute ?? ""}`,
    tokens_per_minute: `${limits.tokens_per_minute ?? ""}`,
    concurrency: `${limits.concurrency ?? ""}`,
    models: (limits.models ?? []).join("\n"),
    addresses: (limits.addresses ?? []).join("\n"),
  };
}

/**
 * The body to send. Full-width characters count as the plain ones. Amounts stay text. Text that is not a whole number is
 * sent as typed, and the gateway refuses it.
 */
export function bodyOf(typed: TypedLimits): object {
  return {
    budgets_usd: Object.fromEntries(SPANS.map((span) => [span, plain(typed[span]) || null])),
    ...Object.fromEntries(RATES.map((rate) => [rate, wholeOf(plain(typed[rate]))])),
    ...Object.fromEntries(LISTS.map((list) => [list, linesOf(plain(typed[list]))])),
  };
}

const plain = (text: string): string => text.normalize("NFKC").trim();

function wholeOf(text: string): number | string | null {
  if (text === "") return null;
  return /^\d{1,15}$/.test(text) ? Number(text) : text;
}

function linesOf(text: string): readonly string[] | null {
  const lines = text.split(/[\s,、]+/).filter(Boolean);
  return lines.length === 0 ? null : lines;
}
