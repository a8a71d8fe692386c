/** Displays and edits a key's limits, which its owner may set, and its caps, which only the operator may set. */
import type { KeyLimitsAnswer } from "../../../answers/limits.ts";
import { usd } from "../../parts/format.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";
import { countOrNone, usdOrNone } from "../common/words.ts";
import type { Typed, WriteField } from "../common/write.ts";

const W = T.operator.limits;
const SPANS = ["day", "week", "month", "total"] as const;
const NUMBERS = ["requests_per_minute", "tokens_per_minute", "concurrency"] as const;
const LISTS = ["models", "addresses"] as const;

export function LimitSet({ title, words, limits }: { title: string; words: string; limits: KeyLimitsAnswer }): VNode {
  const budgets = SPANS.filter((span) => limits.budgets_usd[span] !== null).map(
    (span) => [W.budget[span], usd(limits.budgets_usd[span] ?? "0.00")] as const,
  );
  const numbers = NUMBERS.filter((name) => limits[name] !== null).map(
    (name) => [W[name], countOrNone(limits[name])] as const,
  );
  const lists = LISTS.filter((name) => limits[name] !== null).map(
    (name) => [W[name], limits[name]?.join(", ")] as const,
  );
  const all = [...budgets, ...numbers, ...lists];
  return html`<section class="panel"><h2>${title}</h2><p class="faint">${words}</p>
    ${all.length === 0 ? html`<p>${usdOrNone(null)}</p>` : html`<dl class="pairs">${all.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`}
  </section>`;
}

/** One field for each limit, with its current value. */
export function limitFields(limits: KeyLimitsAnswer): readonly WriteField[] {
  const hint = T.operator.accountActions.emptyNone;
  return [
    ...SPANS.map((span) => ({ name: span, label: W.budget[span], hint, value: limits.budgets_usd[span] ?? "" })),
    ...NUMBERS.map((name) => ({
      name,
      label: W[name],
      hint,
      value: limits[name] === null ? "" : String(limits[name]),
    })),
    ...LISTS.map((name) => ({ name, label: W[name], hint: W.listHint, value: limits[name]?.join(", ") ?? "" })),
  ];
}

/** All limits are replaced: an empty field removes its limit. */
export function limitsBody(typed: Typed): object {
  const text = (name: string) => typed[name]?.trim() || null;
  const number = (name: string) => {
    const given = text(name);
    // If it is not a whole number, the gateway refuses it with its own message.
    return given === null ? null : /^\d{1,10}$/.test(given) ? Number(given) : given;
  };
  const listed = (name: string) =>
    text(name)
      ?.split(/[\s,]+/)
      .filter(Boolean) ?? null;
  return {
    budgets_usd: Object.fromEntries(SPANS.map((span) => [span, text(span)])),
    ...Object.fromEntries(NUMBERS.map((name) => [name, number(name)])),
    ...Object.fromEntries(LISTS.map((name) => [name, listed(name)])),
  };
}
