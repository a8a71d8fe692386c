/** How much of each budget is left. */
import type { OwnAccountAnswer } from "../../answers/own.ts";
import { fromNow, usd } from "../parts/format.ts";
import { Meter } from "../parts/meter.ts";
import { html, type VNode } from "../parts/view.ts";
import { T } from "../texts/texts.ts";

const W = T.owner.keys;

export function BudgetMeters({ budgets }: { budgets: OwnAccountAnswer["budgets"] }): VNode {
  return html`<ul class="plain meters">${budgets.map(({ span, rest_usd, limit_usd, held_usd, resets_at }) => {
    const said = W.budgetLeft(W.spans[span], usd(rest_usd), usd(limit_usd));
    const more = [
      Number(held_usd) === 0 ? "" : W.budgetHeld(usd(held_usd)),
      resets_at === null ? "" : W.budgetAnew(fromNow(resets_at)),
    ].filter(Boolean);
    return html`<li key=${span}>
      <span>${said}</span> <small>${more.join(" · ")}</small>
      <${Meter} label=${said} rest=${rest_usd} limit=${limit_usd} />
    </li>`;
  })}</ul>`;
}
