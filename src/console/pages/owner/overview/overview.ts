/** The account's funds, warnings, spend, and the state of its models. */
import type { OverviewAnswer, OwnAccountAnswer } from "../../../answers/own.ts";
import { usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, Badge, Figure } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { BudgetMeters } from "../budget-meters.ts";
import { CardGroups } from "../cards/card-groups.ts";
import type { PageProps } from "../session.ts";
import { Spend } from "./spend.ts";
import { Warnings } from "./warnings.ts";

const W = T.owner.overview;

export function Overview({ session }: PageProps): VNode {
  const account = useAnswer<OwnAccountAnswer>(`/accounts/${encodeURIComponent(session.account)}`);
  const overview = useAnswer<OverviewAnswer>("/overview");
  return html`<h1>${W.title}</h1>
    <${Awaited} loaded=${overview}>${(data: OverviewAnswer) => html`<${Warnings} warnings=${data.warnings} />`}</${Awaited}>
    <${Awaited} loaded=${account}>${(data: OwnAccountAnswer) => html`
    ${data.status !== "normal" && html`<p class="note warn" role="status">${W.statuses[data.status]}</p>`}
    <dl class="figures">
      <${Figure} title=${W.balance}>${usd(data.balance_usd)}</${Figure}>
      <${Figure} title=${W.held} hint=${W.heldHint}>${usd(data.held_usd)}</${Figure}>
      <${Figure} title=${W.available} hint=${W.availableHint}>${usd(data.available_usd)}</${Figure}>
      ${
        overview.data && [
          html`<${Figure} title=${W.today} hint=${W.todayHint}>${usd(overview.data.today_usd)}</${Figure}>`,
          html`<${Figure} title=${W.month}>${usd(overview.data.total_usd)}</${Figure}>`,
        ]
      }
    </dl>`}</${Awaited}>
    ${overview.data && html`<${Spend} overview=${overview.data} />`}
    ${account.data && html`<${Funds} account=${account.data} />`}
    ${overview.data && html`<${Models} models=${overview.data.models} />`}`;
}

function Funds({ account }: { account: OwnAccountAnswer }): VNode {
  return html`<section class="panel">
      <div class="row apart"><h2>${W.cards}</h2><a href=${hrefOf(["cards"])}>${W.toCards}</a></div>
      ${
        account.entitlements.length === 0
          ? html`<p class="empty">${W.noCards}</p>`
          : html`<${CardGroups} cards=${account.entitlements} />`
      }
    </section>
    ${
      account.budgets.length > 0 &&
      html`<section class="panel"><h2>${W.budgets}</h2><${BudgetMeters} budgets=${account.budgets} /></section>`
    }`;
}

/** Models in trouble first. */
function Models({ models }: { models: OverviewAnswer["models"] }): VNode {
  const inTrouble = models.filter(({ state }) => state === "trouble");
  const rest = models.filter(({ state }) => state === "up");
  const said = inTrouble.length > 0 ? W.someInTrouble(inTrouble.length) : W.allUp(models.length);
  return html`<section class="panel">
    <h2>${W.models}</h2>
    <p class=${inTrouble.length > 0 ? "wrong" : "faint"}>${models.length === 0 ? W.noModels : said}</p>
    <ul class="chips">${[...inTrouble, ...rest].map(
      ({ model, state }) => html`<li key=${model}>
        <span class="mono">${model}</span>
        <${Badge} kind=${state === "up" ? "good" : "bad"}>${state === "up" ? W.up : W.trouble}</${Badge}>
      </li>`,
    )}</ul>
  </section>`;
}
