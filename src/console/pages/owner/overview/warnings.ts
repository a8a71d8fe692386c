/** What is about to run out, one sentence each. */
import type { WarningAnswer } from "../../../answers/own.ts";
import { fromNow, usd } from "../../parts/format.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { T } from "../../texts/texts.ts";

const W = T.owner.overview;

export function Warnings({ warnings }: { warnings: readonly WarningAnswer[] }): VNode | null {
  if (warnings.length === 0) return null;
  return html`<section class="note warn" aria-label=${W.soon}>
    <h2>${W.soon}</h2>
    <ul class="plain">${warnings.map((one) => {
      const href = hrefOfWarning(one);
      return html`<li>${href ? html`<a href=${href}>${sentence(one)}</a>` : sentence(one)}</li>`;
    })}</ul>
  </section>`;
}

function hrefOfWarning({ key_id, kind }: WarningAnswer): string | undefined {
  if (key_id !== null) return hrefOf(["keys", key_id]);
  return kind === "card_end" || kind === "card_quota" ? hrefOf(["cards"]) : undefined;
}

function sentence({ kind, key_id, name, rest_usd, limit_usd, span, at, followed }: WarningAnswer): string {
  const words = W.warnings;
  const called = name ?? key_id ?? words.unnamed;
  const rest = usd(rest_usd ?? "0.00");
  const limit = usd(limit_usd ?? "0.00");
  const when = at === null ? "" : fromNow(at);
  const of = W.spans[span ?? "total"];
  const anew = span === null || at === null ? "" : ` ${words.anew(when)}`;
  switch (kind) {
    case "balance":
      return words.balance(rest, limit);
    case "card_end":
      return followed ? words.cardEndFollowed(called, when) : words.cardEnd(called, when);
    case "card_quota":
      return words.cardQuota(called, rest, limit);
    case "account_budget":
      return words.accountBudget(of, rest, limit) + anew;
    case "key_budget":
      return words.keyBudget(called, of, rest, limit) + anew;
    case "key_end":
      return words.keyEnd(called, when);
  }
}
